"""Programs that can not run here. Each is started, and must end with the error that is written down with the reason."""

from programs import Program

PACKAGE = "tinker_cookbook"
INKLING = "its model, Inkling, which also hears, is not served"
NOT_SERVED = 'base_model: "thinkingmachines/Inkling" is not served here'
MODAL = "tasks of Terminal-Bench, in sandboxes of Modal, a service with an account"


def lacks(module: str, refused: str, reason: str, *arguments: str) -> Program:
    name = "without_" + module.removeprefix("recipes.").replace(".", "_")
    return Program(name, ("-m", f"{PACKAGE}.{module}", *arguments), refused=refused, reason=reason, tiny=True)


def no(package: str) -> str:
    return f"No module named '{package}'"


REASONS = (
    lacks("eval.run_inspect_evals", no("inspect_ai"), "it runs evaluations of `inspect-ai`, which is not installed"),
    lacks("recipes.audio.asr.rl_train", NOT_SERVED, INKLING, "log_path={folder}"),
    lacks("recipes.audio.asr.sl_train", NOT_SERVED, INKLING, "log_path={folder}"),
    lacks("recipes.audio.medical_asr.train", NOT_SERVED, INKLING, "log_path={folder}"),
    lacks("recipes.audio.emotion.rl_train", NOT_SERVED, INKLING, "log_path={folder}", "data_dir={runs}"),
    lacks("recipes.audio.emotion.sl_train", NOT_SERVED, INKLING, "log_path={folder}", "data_dir={runs}"),
    lacks("recipes.audio.emotion.evaluate", NOT_SERVED, INKLING, "data_dir={runs}"),
    lacks(
        "recipes.audio.emotion.prepare_data", "ffmpeg is required", "it converts recordings from the web with `ffmpeg`",
        "data_path={folder}",
    ),
    lacks("recipes.harbor_rl.scripts.eval_harbor_rl", "terminal-bench-2.0", MODAL),
    lacks("recipes.harbor_rl.scripts.train_terminal_bench", "terminal-bench-2.0", MODAL, "log_path={folder}"),
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
    lacks("scripts.inkling.sample_audio", "doesn't exist on the Hub", INKLING),
    lacks("scripts.inkling.sample_reasoning", "tml_renderers", INKLING, "prompt=Hello", "efforts=[0.1]"),
    lacks("supervised.train", "must take a type annotated argument", "its command line is broken in this version"),
    lacks(
        "scripts.inkling.sample_vision", no("tml_renderers"), INKLING,
        "model_name=Qwen/Qwen3-VL-30B-A3B-Instruct", "image_path={picture}",
    ),
    lacks(
        "xmux.control", "assert metadata is not None", "it is the screen of a `tmux` session, and asks no server", "none",
    ),
)  # fmt: skip

# Modules of recipes that are no programs, and the package that they lack.
ABSENT = {
    f"{PACKAGE}.recipes.search_tool.embedding": "google.genai",
    f"{PACKAGE}.recipes.search_tool.search_env": "chromadb",
    f"{PACKAGE}.recipes.search_tool.tools": "chromadb",
    f"{PACKAGE}.recipes.verifiers_rl.verifiers_env": "verifiers",
}
