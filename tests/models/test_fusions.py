"""Every fusion against its formula, written as slow plain loops."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from pfungst.models.ban import BilinearAttention, BilinearPooling
from pfungst.models.butd import ButdConfig, TopDownAttention
from pfungst.models.film import FilmBlock, modulate
from pfungst.models.hiecoatt import CoAttention
from pfungst.models.mlb import HadamardPooling
from pfungst.models.mutan import TuckerFusion
from pfungst.models.relation import Relations
from pfungst.models.san import AttentionLayer
from pfungst.models.slot_attention import SlotAttention
from tests.models.tiny import make, tiny_batch

R = torch.Generator().manual_seed(7)


def rand(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=R, dtype=torch.float64)


def softmax(values: list[float]) -> list[float]:
    powers = [math.exp(v) for v in values]
    return [p / sum(powers) for p in powers]


def test_mutan_is_a_tucker_tensor_whose_slices_have_rank_r() -> None:
    t_q, t_v, t_o, rank = 3, 4, 5, 2
    fusion = TuckerFusion(6, 7, t_q, t_v, t_o, rank, 0.0).double()
    for bias in (fusion.question_core.bias, fusion.picture_core.bias):
        torch.nn.init.zeros_(bias)
    q, v = rand(6), rand(7)
    small_q = torch.tanh(fusion.question(q))
    small_v = torch.tanh(fusion.picture(v))
    # core[i, j, k] = sum_r m_r^k[i] n_r^k[j]
    m = fusion.question_core.weight.reshape(rank, t_o, t_q)
    n = fusion.picture_core.weight.reshape(rank, t_o, t_v)
    expected = []
    for k in range(t_o):
        z = 0.0
        for i in range(t_q):
            for j in range(t_v):
                core = sum(float(m[r, k, i] * n[r, k, j]) for r in range(rank))
                z += float(small_q[i]) * core * float(small_v[j])
        expected.append(math.tanh(z))
    np.testing.assert_allclose(fusion(q[None], v[None])[0].tolist(), expected, rtol=1e-10, atol=1e-14)


def test_mlb_is_a_hadamard_product_of_two_projections() -> None:
    pool = HadamardPooling(3, 4, 5, 0.0).double()
    x, y = rand(3), rand(4)
    expected = []
    for k in range(5):
        one = sum(float(pool.first.weight[k, i] * x[i]) for i in range(3)) + float(pool.first.bias[k])
        two = sum(float(pool.second.weight[k, i] * y[i]) for i in range(4)) + float(pool.second.bias[k])
        expected.append(math.tanh(one) * math.tanh(two))
    np.testing.assert_allclose(pool(x[None], y[None])[0].tolist(), expected, rtol=1e-10, atol=1e-14)


def test_ban_weighs_every_pair_of_word_and_region() -> None:
    attend = BilinearAttention(3, 4, 6, 2, 0.0).double()
    words, regions = rand(3, 3), rand(5, 4)
    asked = torch.tensor([[True, True, False]])
    there = torch.tensor([[True] * 4 + [False]])
    u, v = attend.words(words), attend.regions(regions)
    weights = attend(words[None], regions[None], asked, there)[0]
    for g in range(2):
        pairs = [(t, r) for t in range(2) for r in range(4)]
        scores = [
            sum(float(attend.glimpses[g, k] * u[t, k] * v[r, k]) for k in range(6)) + float(attend.bias[g])
            for t, r in pairs
        ]
        for (t, r), share in zip(pairs, softmax(scores), strict=True):
            assert math.isclose(float(weights[g, t, r]), share, rel_tol=1e-5)
    assert float(weights[:, 2].abs().sum() + weights[:, :, 4].abs().sum()) == 0.0


def test_ban_pools_bilinearly_through_the_weights() -> None:
    pool = BilinearPooling(3, 4, 6, 0.0).double()
    words, regions, weights = rand(2, 3), rand(5, 4), rand(2, 5)
    x, y = pool.words(words), pool.regions(regions)
    expected = [sum(float(x[t, k] * weights[t, r] * y[r, k]) for t in range(2) for r in range(5)) for k in range(6)]
    np.testing.assert_allclose(
        pool(words[None], regions[None], weights[None])[0].tolist(), expected, rtol=1e-10, atol=1e-14
    )


def test_film_scales_and_shifts_every_channel() -> None:
    x, gamma, beta = rand(2, 3, 2, 2), rand(2, 3), rand(2, 3)
    out = modulate(x, gamma, beta)
    for b in range(2):
        for c in range(3):
            for i in range(2):
                for j in range(2):
                    assert math.isclose(float(out[b, c, i, j]), float(gamma[b, c] * x[b, c, i, j] + beta[b, c]))


def test_a_film_block_with_zero_gamma_and_beta_passes_its_first_convolution_on() -> None:
    block = FilmBlock(4).double().eval()
    x, zero = rand(1, 4, 3, 3), torch.zeros(1, 4, dtype=torch.float64)
    first = block.first
    out = block(x, zero, zero)
    for i in range(3):
        for j in range(3):
            place = [j - 1.0, i - 1.0]
            values = [*x[0, :, i, j].tolist(), *place]
            for c in range(4):
                total = sum(w * v for w, v in zip(first.weight[c, :, 0, 0].tolist(), values, strict=True))
                assert math.isclose(float(out[0, c, i, j]), max(0.0, total + float(first.bias[c])), abs_tol=1e-12)


def test_a_relation_network_sums_over_all_ordered_pairs() -> None:
    pairs = Relations(3, 2, (5, 4)).double()
    objects, question = rand(4, 3), rand(2)
    there = torch.tensor([[True, True, True, False]])
    last = pairs.rest[0]
    weight = torch.cat([pairs.first.weight, pairs.second.weight, pairs.ask.weight], 1)
    expected = torch.zeros(4, 4, dtype=torch.float64)
    for i in range(3):
        for j in range(3):
            joined = torch.cat([objects[i], objects[j], question])
            hidden = torch.relu(weight @ joined + pairs.ask.bias)
            expected[i] += torch.relu(last.weight @ hidden + last.bias)
    total, each, _ = pairs(objects[None], there, question[None])
    np.testing.assert_allclose(total[0].tolist(), expected.sum(0).tolist(), rtol=1e-5)
    np.testing.assert_allclose(each[0].tolist(), expected.tolist(), rtol=1e-5)


def test_co_attention_alternates_question_picture_question() -> None:
    level = CoAttention(3, 0.0).double()
    words, cells = rand(4, 3), rand(5, 3)

    def look(attention: torch.nn.Module, parts: Tensor, guide: Tensor | None) -> tuple[Tensor, list[float]]:
        scores = []
        for part in parts:
            hidden = attention.parts.weight @ part + attention.parts.bias
            if guide is not None:
                hidden = hidden + attention.guide.weight @ guide
            scores.append(float(attention.weigh.weight[0] @ torch.tanh(hidden) + attention.weigh.bias[0]))
        shares = softmax(scores)
        return sum((s * p for s, p in zip(shares, parts, strict=True)), torch.zeros(3, dtype=torch.float64)), shares

    summary, _ = look(level.summary, words, None)
    seen, over_picture = look(level.picture, cells, summary)
    asked, over_words = look(level.question, words, seen)
    every = torch.ones(1, 5, dtype=torch.bool)
    got = level(words[None], every[:, :4], cells[None], every)
    np.testing.assert_allclose(got[0][0].tolist(), asked.tolist(), rtol=1e-5)
    np.testing.assert_allclose(got[1][0].tolist(), seen.tolist(), rtol=1e-5)
    np.testing.assert_allclose(got[2][0].tolist(), over_words, rtol=1e-5)
    np.testing.assert_allclose(got[3][0].tolist(), over_picture, rtol=1e-5)


def test_phrases_are_the_largest_of_one_two_and_three_grams() -> None:
    model = make("hiecoatt").double()
    words = rand(1, 4, 16)
    phrases = model.phrases(words)
    nothing = torch.zeros(16, dtype=torch.float64)
    for t in range(4):
        at = lambda i: words[0, i] if 0 <= i < 4 else nothing  # noqa: E731
        windows = [[at(t)], [at(t - 1), at(t)], [at(t - 1), at(t), at(t + 1)]]
        for c in range(16):
            grams = []
            for gram, window in zip(model.grams, windows, strict=True):
                total = sum(float(gram.weight[c, :, n] @ word) for n, word in enumerate(window))
                grams.append(math.tanh(total + float(gram.bias[c])))
            assert math.isclose(float(phrases[0, t, c]), max(grams), rel_tol=1e-9, abs_tol=1e-12)


def test_a_san_layer_adds_what_it_looks_at_to_its_query() -> None:
    layer = AttentionLayer(3, 4, 0.0).double()
    cells, query = rand(5, 3), rand(3)
    scores = []
    for cell in cells:
        hidden = torch.tanh(layer.look.weight @ cell + layer.ask.weight @ query + layer.ask.bias)
        scores.append(float(layer.weigh.weight[0] @ hidden))
    expected = query.clone()
    for share, cell in zip(softmax(scores), cells, strict=True):
        expected += share * cell
    got, _, _ = layer(cells[None], torch.ones(1, 5, dtype=torch.bool), query[None])
    np.testing.assert_allclose(got[0].tolist(), expected.tolist(), rtol=1e-5)


def test_top_down_attention_gates_region_and_question_together() -> None:
    attend = TopDownAttention(3, 2, 4, ButdConfig()).double()
    cells, question = rand(5, 3), rand(2)
    scores = []
    for cell in cells:
        both = torch.cat([cell, question])
        value = torch.tanh(attend.layer.value.weight @ both + attend.layer.value.bias)
        gate = torch.sigmoid(attend.layer.gate.weight @ both + attend.layer.gate.bias)
        scores.append(float(attend.weigh.weight[0] @ (value * gate)))
    got = attend(cells[None], torch.ones(1, 5, dtype=torch.bool), question[None])
    np.testing.assert_allclose(got[0].tolist(), softmax(scores), rtol=1e-5)


def test_slots_compete_for_every_cell_and_average_what_they_win() -> None:
    attention = SlotAttention(4, 6, 1).double()
    inputs, slots = rand(5, 4), rand(3, 4)
    normed, asking = attention.input_norm(inputs), attention.slot_norm(slots)
    scores = [[float(attention.query(s) @ attention.key(x)) / 2.0 for x in normed] for s in asking]
    share = [[0.0] * 5 for _ in range(3)]
    for n in range(5):
        column = softmax([scores[k][n] for k in range(3)])
        for k in range(3):
            share[k][n] = column[k]
    new = []
    for k in range(3):
        total = sum(share[k])
        update = sum((share[k][n] / total) * attention.value(normed[n]) for n in range(5))
        slot = attention.update(update[None], slots[k][None])[0]
        new.append(slot + attention.refine(slot))
    got, weights = attention(inputs[None], slots[None])
    np.testing.assert_allclose(weights[0].tolist(), share, rtol=1e-5)
    np.testing.assert_allclose(got[0].tolist(), torch.stack(new).tolist(), rtol=1e-5)


def test_a_choice_of_the_mlp_scores_by_equation_one() -> None:
    model = make("mlp-iqa").eval()
    batch = tiny_batch(2)
    scores = model(batch).logits
    picture = model.picture(batch)
    for b in range(2):
        asked = [model.words.weight[w] for w in batch.question[b].tolist() if w]
        for k in range(4):
            chosen = [model.words.weight[w] for w in batch.choices[b, k].tolist() if w]
            g = torch.cat([sum(chosen) / len(chosen), picture[b], sum(asked) / len(asked)])
            hidden = torch.clamp(model.hidden.weight @ g + model.hidden.bias, min=0)
            expected = float(model.score.weight[0] @ hidden + model.score.bias[0])
            assert math.isclose(float(scores[b, k]), expected, rel_tol=1e-4, abs_tol=1e-5)
