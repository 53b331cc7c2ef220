"""Model folders on the Hugging Face hub: fetched as they are, pushed in one commit; errors told in one line."""

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from seq2seq import __version__
from seq2seq.errors import UserError, first_line


def download(repository: str, revision: str | None, files: Sequence[str]) -> Path:
    """These files of a repository, from the cache where they are there or the hub does not answer."""
    from huggingface_hub import snapshot_download

    name = f"{repository}@{revision}" if revision else repository
    try:
        return Path(snapshot_download(repository, revision=revision, allow_patterns=list(files)))
    except Exception as error:  # the hub client raises many kinds
        reason = _reason(error, repository)
        raise UserError(f"model {name!r} is no folder here, and the hub does not give it: {reason}") from None


def push(
    save: Callable[[Path], None],
    files: Sequence[str],
    repository: str,
    private: bool = False,
    token: str | None = None,
    message: str | None = None,
) -> str:
    """Upload these files of the folder that `save` writes, in one commit; returns the address of the model's page."""
    from huggingface_hub import get_token
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # exported, but not by name

    try:
        validate_repo_id(repository)
        if repository.count("/") != 1:
            raise HFValidationError("an owner is missing")
    except HFValidationError as error:
        reason = first_line(error)
        raise UserError(f'{repository!r} is not a name for the hub, as in "owner/name": {reason}') from None
    token = token or get_token()
    if not token:
        raise UserError(f"pushing {repository!r} needs a token: run `hf auth login`, set HF_TOKEN, or pass token=")
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "model"
        save(folder)
        try:
            return _upload(folder, files, repository, private, token, message or f"Upload with seq2seq {__version__}")
        except Exception as error:  # the hub client raises many kinds
            raise UserError(f"{repository!r} cannot be pushed: {_reason(error, repository)}") from None


def _upload(folder: Path, files: Sequence[str], repository: str, private: bool, token: str, message: str) -> str:
    """One commit with the files that a model folder may have, and without those that this one has not."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    api = HfApi(token=token, library_name="seq2seq", library_version=__version__)
    url = str(api.create_repo(repository, private=private, exist_ok=True))
    present = [name for name in files if (folder / name).is_file()]
    stale = set(files) & set(api.list_repo_files(repository)) - set(present)
    # Not upload_folder: it may make several commits, and between two of them the model would not fit its tokenizer.
    additions = [CommitOperationAdd(path_in_repo=name, path_or_fileobj=folder / name) for name in present]
    deletions = [CommitOperationDelete(path_in_repo=name) for name in sorted(stale)]
    api.create_commit(repository, [*additions, *deletions], commit_message=message)
    return url


def _reason(error: Exception, repository: str) -> str:
    """What the client's error means, and what to do, in one line."""
    from huggingface_hub import errors

    login = "log in with `hf auth login` or set HF_TOKEN"
    meanings = {
        errors.GatedRepoError: f"it is gated: accept its terms at https://huggingface.co/{repository}, then {login}",
        errors.RevisionNotFoundError: "there is no such revision (branch, tag or commit)",
        errors.RepositoryNotFoundError: f"there is no such model, or it is private: check the name, {login}",
        errors.LocalEntryNotFoundError: "the hub cannot be reached, and the cache does not hold it",
    }
    for kind, meaning in meanings.items():
        if isinstance(error, kind):
            return meaning
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return f"the token does not allow it (status {status}): {login}, with a token that may write there"
    if isinstance(error, ConnectionError) or "Connect" in type(error).__name__:
        return f"the hub cannot be reached: {first_line(error)}"
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, Exception):  # "error while uploading", but why?
        return f"{first_line(error)} {_reason(error.__cause__, repository)}"
    said = getattr(error, "server_message", None)
    return f"{first_line(error)} {said} (status {status})" if said else first_line(error)
