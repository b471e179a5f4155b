"""Programs that can not run here. Each is started, and must end with the error that is written down with the reason."""

from programs import Program

PACKAGE = "tinker_cookbook"
INKLING = "the models that hear or that `tml-renderers` renders are not served: its package is not installed"
MODAL = "the sandboxes are those of Modal, a service with an account"


def lacks(module: str, refused: str, reason: str, *arguments: str) -> Program:
    name = "without_" + module.removeprefix("recipes.").replace(".", "_")
    return Program(name, ("-m", f"{PACKAGE}.{module}", *arguments), refused=refused, reason=reason, tiny=True)


def no(package: str) -> str:
    return f"No module named '{package}'"


REASONS = (
    lacks("eval.run_inspect_evals", no("inspect_ai"), "it runs evaluations of `inspect-ai`, which is not installed"),
    lacks("recipes.audio.asr.rl_train", no("soundfile"), INKLING, "log_path={folder}"),
    lacks("recipes.audio.asr.sl_train", no("soundfile"), INKLING, "log_path={folder}"),
    lacks("recipes.audio.medical_asr.train", no("soundfile"), INKLING, "log_path={folder}"),
    lacks("recipes.audio.emotion.rl_train", "tml_renderers", INKLING, "log_path={folder}", "data_dir={runs}"),
    lacks("recipes.audio.emotion.sl_train", "tml_renderers", INKLING, "log_path={folder}", "data_dir={runs}"),
    lacks("recipes.audio.emotion.evaluate", "tml_renderers", INKLING, "data_dir={runs}"),
    lacks(
        "recipes.audio.emotion.prepare_data", "ffmpeg is required", "it converts recordings from the web with `ffmpeg`",
        "data_path={folder}",
    ),
    lacks("recipes.harbor_rl.scripts.eval_harbor_rl", no("modal"), MODAL),
    lacks("recipes.harbor_rl.scripts.train_terminal_bench", no("modal"), MODAL, "log_path={folder}"),
    lacks(
        "recipes.search_tool.train", no("chromadb"),
        "it searches a Chroma data base of Wikipedia with embeddings of Gemini, a service with an account",
        "log_path={folder}",
    ),
    lacks(
        "recipes.search_tool.offline_eval", no("chromadb"), "as `search_tool.train`", "tinker_checkpoint_url=tinker://x",
    ),
    lacks("recipes.verifiers_rl.train", no("verifiers"), "it needs verifiers 0.1.9, which is not installed"),
    lacks("recipes.verifiers_rl.evaluate", no("verifiers"), "as `verifiers_rl.train`"),
    lacks("scripts.get_access_token", "Set TINKER_CREDENTIAL_CMD", "it asks the hosted service for a token"),
    lacks("scripts.inkling.sample_audio", "tml_renderers", INKLING),
    lacks("scripts.inkling.sample_reasoning", "tml_renderers", INKLING),
    lacks("scripts.inkling.sample_vision", "tml_renderers", INKLING),
    lacks("xmux.control", "error", "it is a screen of `tmux`, and asks no server", "none"),
)  # fmt: skip

# Modules of recipes that are no programs, and the package that they lack.
ABSENT: dict[str, str] = {}
