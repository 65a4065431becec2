"""What a golden case is."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """One checkpoint. `seed` decides its weights and its prompt."""

    name: str
    notes: str
    config: dict
    prompt_tokens: int
    seed: int
    dtype: str = "float32"  # of the weights on disk
    shards: int = 1
    embedding_deviation: float = 0.5
    extra_tensors: dict = field(default_factory=dict)  # name -> shape; a loader must ignore them
    eos: object = 2  # an id or a list of ids, for generation_config.json
    # The folder is what transformers' own save_pretrained writes, its names and its config.
    saved: bool = False
    # transformers does not have all of it: goldens/hybrid.py alone is the reference.
    by_formula: bool = False
    # The weights stay in the tree as a file, for tests that hand the folder to a program.
    whole: bool = False
    # Kept as a recipe by hash (goldens/grown.py), with the last rows of the reference alone.
    grown: bool = False
    reference_rows: int = 2  # of a grown case
    norm_center: float = 1  # of norms' weights
    transposed: bool = False  # matrices of all experts are [experts, columns, rows]
    mxfp4: bool = False  # and these are stored as blocks and scales
