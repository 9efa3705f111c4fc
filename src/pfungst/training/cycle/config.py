"""How a model is trained for cycle consistency, with the paper's numbers as defaults."""

from __future__ import annotations

from dataclasses import dataclass

from pfungst.core import UsageError

LAMBDA_G = 1.0
LAMBDA_C = 0.5
T_SIM = 0.9
A_ITER = 5500
"""Section 5.1, Implementation Details, of Cycle-Consistency for Robust VQA."""

FEEDBACKS = ("sample", "greedy", "forced")


@dataclass(frozen=True)
class CycleConfig:
    """L_total = L_F + lambda_g L_G + lambda_c L_cycle (Eq. 1), with gating and late activation; all of it can be
    switched off."""

    lambda_g: float = LAMBDA_G
    """Weight of L_G, the question's negative log likelihood (Q-consistency). 0 trains no generator."""
    lambda_c: float = LAMBDA_C
    """Weight of L_cycle, the answer to the generated question (A-consistency). 0 leaves it out."""
    gating: bool = True
    """Keep only generated questions that are answered correctly or resemble the original (Section 3.2)."""
    t_sim: float = T_SIM
    """Least cosine similarity of the two questions' encodings."""
    start: float = A_ITER
    """A_iter: steps after which L_cycle counts (Section 3.3). Below 1: the share of all steps, for short runs."""
    attended: bool = True
    """Give G the image as F attended to it; else the mean over the whole image (end of Section 5.2)."""
    feedback: str = "forced"
    """How G writes Q' for the second pass. `forced`: a word for every place, drawn given the original words before it,
    from the very pass that L_G is taken of. `sample`: word by word on its own; `greedy`: the likeliest words, only the
    noise varies them. The paper says that G is trained with teacher forcing, not how Q' is read off."""
    temperature: float = 1.0
    """Of the drawn words; below 1 the likely ones become likelier."""
    noise: float = 0.1
    """Standard deviation of the additive noise. The paper has noise but not its size."""
    size: int = 0
    """Length of the two encodings, which are summed; 0: half of the model's encoding of the question, 64 to 512. The
    paper names no widths, but these are "lower dimensional"."""
    hidden: int = 0
    """LSTM; 0: three quarters of that encoding, 64 to 512."""
    unknown: float = 0.0
    """Share of the words of Q' that F is shown as unknown. Not in the paper, whose models know all words beforehand
    (GloVe); models that learn their words meet unseen ones first in somebody else's wording."""
    tied: bool = False
    """G reads and writes words by the vectors that F's words start from, and may write words that no training question
    has, where their vectors lie near those of words that do. For models with word vectors from elsewhere."""
    through: bool = False
    """Let L_cycle reach G through the drawn words (straight-through). The paper does not say; off, G learns from L_G
    alone, and F from everything."""

    def __post_init__(self) -> None:
        if self.feedback not in FEEDBACKS:
            raise UsageError(f"There is no feedback {self.feedback!r}. There are: {', '.join(FEEDBACKS)}.")
        if min(self.lambda_g, self.lambda_c, self.start, self.noise) < 0:
            raise UsageError("Weights, start and noise of cycle training cannot be negative.")
        if not -1 <= self.t_sim <= 1:
            raise UsageError(f"T_sim is a cosine, between -1 and 1, not {self.t_sim}.")
        if not 0 <= self.unknown < 1:
            raise UsageError(f"The share of unknown words must be between 0 and 1, not {self.unknown}.")
        if self.temperature <= 0 or min(self.size, self.hidden) < 0:
            raise UsageError("The temperature of the question generator must be above 0, its sizes 0 or more.")
        if self.lambda_c and not self.lambda_g:
            raise UsageError("A-consistency needs a generator that learns: lambda_g cannot be 0 where lambda_c is not.")

    def start_step(self, total: int) -> int:
        """The first step, counted from 0, in which L_cycle counts."""
        return round(self.start * total) if self.start < 1 else round(self.start)
