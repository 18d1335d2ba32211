import pytest

from tests.fuzz import failures


@pytest.mark.filterwarnings("ignore")
def test_whatever_call_fails_the_file_is_the_old_one_or_the_new_one():
    done, wrong = failures.inject(42, seed=1)
    assert wrong == []
    assert min(done.values()) == 3


def test_a_task_that_writes_in_place_is_seen(tmp_path):
    def in_place(path):
        with open(path, "wb") as file:
            for _ in range(10):
                file.write(b"x" * 100)

    found = {failures.attempt(in_place, "a", at, failures.errors()[0]) for at in range(1, 12)}
    assert any("neither the old file nor the new one" in said for said in found)
