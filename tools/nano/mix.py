"""python mix.py --out FOLDER FOLDER=SHARE ...: a mean of exported weights. Checkpoints of one run,
averaged, err less than the last of them; a share of the weights that the run began with keeps more
of what they could do (arXiv:2109.01903)."""

import argparse
import shutil
from pathlib import Path

from export import write_sums
from safetensors.torch import load_file, save_file


def mixed(folders):
    """[(folder, share)] -> name -> tensor, added up in f32, in the types of the first folder."""
    total = {}
    for folder, share in folders:
        for name, tensor in load_file(folder / "model.safetensors").items():
            total[name] = total.get(name, 0) + share * tensor.float()
    first = load_file(folders[0][0] / "model.safetensors")
    return {name: tensor.to(first[name].dtype).contiguous() for name, tensor in total.items()}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("folders", nargs="+", metavar="FOLDER=SHARE")
    o = p.parse_args()
    folders = [(Path(f), float(share)) for f, share in (x.rsplit("=", 1) for x in o.folders)]
    if abs(sum(share for _, share in folders) - 1) > 1e-6:
        p.error(f"the shares add up to {sum(share for _, share in folders)}: they must to 1")
    tensors = mixed(folders)
    if o.out.resolve() != folders[0][0].resolve():
        shutil.copytree(folders[0][0], o.out, dirs_exist_ok=True)
    save_file(tensors, o.out / "model.safetensors", {"format": "pt"})
    (o.out / "model.safetensors").chmod(0o644)
    write_sums(o.out)


if __name__ == "__main__":
    main()
