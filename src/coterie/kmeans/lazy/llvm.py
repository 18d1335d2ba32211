"""The inner loops of the compiled kernels in the intermediate language of LLVM, for any vector width and processor.

numba does not keep the sums of several rows in registers by itself. Everything else is compiled from Python. Beside
each function stands what it computes in numpy, which runs where numba does not compile.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from coterie.kmeans.lazy.lanes import CHUNK, ROWS, STRETCH, lanes
from coterie.threads import intrinsic


def _vector(array_type):
    number = ir.FloatType() if array_type.dtype is types.float32 else ir.DoubleType()
    return number, lanes(4 if array_type.dtype is types.float32 else 8)


def _pointer(context, builder, array_type, value, offset=None):
    data = context.make_array(array_type)(context, builder, value).data
    return data if offset is None else builder.gep(data, [offset])


def _as_int64(context, builder, value, value_type):
    return context.cast(builder, value, value_type, types.int64)


def _spread(builder, value, vector):
    """A vector with the value in every lane."""
    undefined = ir.Constant(vector, ir.Undefined)
    single = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    return _shuffle(builder, single, undefined, [0] * vector.count)


def _shuffle(builder, a, b, mask):
    constant = ir.Constant(ir.VectorType(ir.IntType(32), len(mask)), mask)
    return builder.shuffle_vector(a, b, constant)


def _row_minima(builder, vectors, width):
    """One vector with the minimum of each of the given vectors, by a tournament that shares its shuffles."""
    parts = width  # lanes that each row still has; a vector holds width // parts rows
    while parts > 1:
        half = parts // 2
        pairs = [(vectors[0], vectors[0])] if len(vectors) == 1 else list(zip(vectors[::2], vectors[1::2]))
        total = vectors[0].type.count
        merged = []
        for a, b in pairs:
            blocks = range(0, total if a is b else 2 * total, parts)
            low = [start + lane for start in blocks for lane in range(half)]
            high = [lane + half for lane in low]
            one, other = _shuffle(builder, a, b, low), _shuffle(builder, a, b, high)
            merged.append(builder.select(builder.fcmp_ordered("<", one, other), one, other))
        vectors, parts = merged, half
    return vectors[0]


def tile_scores(n_rows: int, by_member: bool, differences: bool = False) -> Any:
    """A function for compiled code that scores ``n_rows`` rows against one tile, as ``plain`` defines it."""

    def plain(block, members, at, first, tiles, offsets, tile, begin, out, minima):
        places = np.arange(first, first + n_rows)
        own, n_tiles, width = members[at + places], tiles.shape[0], tiles.shape[2]
        rows, columns = block[own, begin : begin + CHUNK], tiles[tile, begin : begin + CHUNK]
        values = ((rows[:, :, None] - columns) ** 2).sum(axis=1) if differences else rows @ columns
        targets, written = (own if by_member else places) * n_tiles + tile, out.reshape(-1, width)
        written[targets] = values + (written[targets] if begin else offsets.reshape(-1, width)[tile])
        minima[places] = written[targets].min(axis=1)

    @intrinsic(plain)
    def scores(typing, block, members, at, first, tiles, offsets, tile, begin, out, minima):
        """Scores of ``n_rows`` rows of ``block`` against one tile, by a chunk of the coordinates from ``begin``.

        The rows are ``p = members[at + first + r]``. Row ``p * n_tiles + tile`` of ``out`` (``first + r`` instead of
        ``p`` unless ``by_member``) becomes ``offsets[tile] + block[p] @ tiles[tile]`` over the chunks so far, and
        ``minima[first + r]`` the smallest lane. With ``differences``, squared distances to the lanes replace products.
        """

        def generate(context, builder, signature, arguments):
            block_t, members_t, at_t, first_t, tiles_t, offsets_t, tile_t, begin_t, out_t, minima_t = signature.args
            number, width = _vector(tiles_t)
            vector = ir.VectorType(number, width)
            int64 = ir.IntType(64)
            block_v, members_v, at_v, first_v, tiles_v, offsets_v, tile_v, begin_v, out_v, minima_v = arguments
            first_i = _as_int64(context, builder, first_v, first_t)
            begin_i = _as_int64(context, builder, begin_v, begin_t)
            tile_i = _as_int64(context, builder, tile_v, tile_t)
            tiles_s = context.make_array(tiles_t)(context, builder, tiles_v)
            n_tiles, n_features, _ = cgutils.unpack_tuple(builder, tiles_s.shape)
            lane_count = ir.Constant(int64, width)
            chunk_end = builder.add(begin_i, ir.Constant(int64, CHUNK))
            stop = builder.select(builder.icmp_signed("<", chunk_end, n_features), chunk_end, n_features)

            tile_at = builder.mul(builder.mul(tile_i, n_features), lane_count)
            tile_p = builder.gep(tiles_s.data, [tile_at])
            offset_p = _pointer(context, builder, offsets_t, offsets_v, builder.mul(tile_i, lane_count))
            is_first = builder.icmp_signed("==", begin_i, ir.Constant(int64, 0))
            from_i = builder.add(_as_int64(context, builder, at_v, at_t), first_i)
            rows, targets, before_chunk = [], [], []
            for r in range(n_rows):
                at_i = builder.add(from_i, ir.Constant(int64, r))
                member = builder.load(_pointer(context, builder, members_t, members_v, at_i))
                member = _as_int64(context, builder, member, members_t.dtype)
                rows.append(_pointer(context, builder, block_t, block_v, builder.mul(member, n_features)))
                target = member if by_member else builder.add(first_i, ir.Constant(int64, r))
                place = builder.mul(builder.add(builder.mul(target, n_tiles), tile_i), lane_count)
                out_p = _pointer(context, builder, out_t, out_v, place)
                targets.append(builder.bitcast(out_p, vector.as_pointer()))
                source = builder.bitcast(builder.select(is_first, offset_p, out_p), vector.as_pointer())
                before_chunk.append(builder.load(source, align=_bytes(number)))

            zero = ir.Constant(vector, [0.0] * width)
            multiply_add = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(vector, [vector] * 3),
                f"llvm.fmuladd.v{width}f{8 * _bytes(number)}",
            )
            before = builder.block
            outer = builder.append_basic_block("stretch")
            inner = builder.append_basic_block("coordinate")
            joined = builder.append_basic_block("joined")
            after = builder.append_basic_block("scored")
            builder.branch(outer)
            builder.position_at_end(outer)
            begin = builder.phi(int64)
            begin.add_incoming(begin_i, before)
            totals = [builder.phi(vector) for _ in range(n_rows)]
            stretch_end = builder.add(begin, ir.Constant(int64, STRETCH))
            end = builder.select(builder.icmp_signed("<", stretch_end, stop), stretch_end, stop)
            builder.branch(inner)
            builder.position_at_end(inner)
            j = builder.phi(int64)
            j.add_incoming(begin, outer)
            sums = [builder.phi(vector) for _ in range(n_rows)]
            column_p = builder.gep(tile_p, [builder.mul(j, lane_count)])
            column = builder.load(builder.bitcast(column_p, vector.as_pointer()), align=_bytes(number))
            news = []
            for row, total in zip(rows, sums):
                value = _spread(builder, builder.load(builder.gep(row, [j])), vector)
                total.add_incoming(zero, outer)
                factors = [builder.fsub(value, column)] * 2 if differences else [value, column]
                news.append(builder.call(multiply_add, [*factors, total]))
                total.add_incoming(news[-1], inner)
            following = builder.add(j, ir.Constant(int64, 1))
            j.add_incoming(following, inner)
            builder.cbranch(builder.icmp_signed("<", following, end), inner, joined)
            builder.position_at_end(joined)
            finals = []
            for total, new, earlier in zip(totals, news, before_chunk):
                finals.append(builder.fadd(total, new))
                total.add_incoming(earlier, before)
                total.add_incoming(finals[-1], joined)
            begin.add_incoming(end, joined)
            builder.cbranch(builder.icmp_signed("<", end, stop), outer, after)
            builder.position_at_end(after)

            for target, final in zip(targets, finals):
                builder.store(final, target, align=_bytes(number))
            best = _row_minima(builder, finals, width)
            minima_p = _pointer(context, builder, minima_t, minima_v, first_i)
            builder.store(best, builder.bitcast(minima_p, best.type.as_pointer()), align=_bytes(number))
            return context.get_dummy_value()

        return types.void(block, members, at, first, tiles, offsets, tile, begin, out, minima), generate

    return scores


def _bytes(number):
    return 4 if isinstance(number, ir.FloatType) else 8


score_rows = tile_scores(ROWS, by_member=True)
score_few = tile_scores(ROWS // 2, by_member=True)
score_places = tile_scores(ROWS, by_member=False)
sq_distances_of_places = tile_scores(ROWS, by_member=False, differences=True)


def _first_and_second(scores, row, smallest):
    values = scores.reshape(-1, lanes(scores.itemsize))[row]
    lane = int((values == smallest).argmax())
    return lane, np.delete(values, lane).min()


@intrinsic(_first_and_second)
def first_and_second(typing, scores, row, smallest):
    """The lane of the known minimum of a row of one vector, and the minimum of the other lanes."""

    def generate(context, builder, signature, arguments):
        scores_t, row_t, smallest_t = signature.args
        number, width = _vector(scores_t)
        vector, int32 = ir.VectorType(number, width), ir.IntType(32)
        row_i = _as_int64(context, builder, arguments[1], row_t)
        at = builder.mul(row_i, ir.Constant(ir.IntType(64), width))
        pointer = builder.bitcast(_pointer(context, builder, scores_t, arguments[0], at), vector.as_pointer())
        values = builder.load(pointer, align=_bytes(number))
        known = context.cast(builder, arguments[2], smallest_t, scores_t.dtype)
        equal = builder.fcmp_ordered("==", values, _spread(builder, known, vector))
        mask = builder.bitcast(equal, ir.IntType(width))
        lane = builder.cttz(mask, ir.Constant(ir.IntType(1), 0))
        others = builder.shl(ir.Constant(ir.IntType(width), 1), lane)
        own = builder.bitcast(others, ir.VectorType(ir.IntType(1), width))
        infinity = ir.Constant(vector, [float("inf")] * width)
        narrow = _row_minima(builder, [builder.select(own, infinity, values)], width)
        second = builder.extract_element(narrow, ir.Constant(int32, 0))
        return context.make_tuple(builder, signature.return_type, [builder.zext(lane, ir.IntType(64)), second])

    return types.Tuple((types.int64, scores.dtype))(scores, row, smallest), generate


@intrinsic(lambda array, row: None)
def prefetch(typing, array, row):
    """Request a row of a two-dimensional array before it is needed."""

    def generate(context, builder, signature, arguments):
        array_t, row_t = signature.args
        view = context.make_array(array_t)(context, builder, arguments[0])
        int32, int64 = ir.IntType(32), ir.IntType(64)
        n_columns = cgutils.unpack_tuple(builder, view.shape)[1]
        first = builder.mul(_as_int64(context, builder, arguments[1], row_t), n_columns)
        byte_pointer = ir.IntType(8).as_pointer()
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte_pointer, int32, int32, int32]),
            "llvm.prefetch.p0",
        )
        line = ir.Constant(int64, 64 // array_t.dtype.bitwidth * 8)
        with cgutils.for_range_slice(builder, ir.Constant(int64, 0), n_columns, line) as (offset, _):
            address = builder.bitcast(builder.gep(view.data, [builder.add(first, offset)]), byte_pointer)
            builder.call(function, [address, int32(0), int32(2), int32(1)])
        return context.get_dummy_value()

    return types.void(array, row), generate
