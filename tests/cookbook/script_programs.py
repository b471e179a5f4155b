"""Programs of the cookbook beside its recipes' training: scripts, sweeps, evaluations of what was saved, and tools."""

from programs import FRESH, REWARD, Program
from tiny_programs import DENSE, GROUPS, PACKAGE, QWEN, RARE, SMALL, VISION, agree, recorded, says, talk, tiny

TRAINED = "chat_sl_qwen3"
SWEEP = (
    "recipe=sft", f"base.model_name={DENSE}", "base.batch_size=16", "base.eval_every=1", "base.save_every=0",
    "training_budget_examples=32", "learning_rates=[1e-3,1e-2]", "lora_ranks=[4]", "sweep_dir={folder}/Qwen-Qwen3-8B",
)  # fmt: skip
DOWNLOAD = (
    "import sys; from tinker_cookbook import weights; weights.download(tinker_path=sys.argv[1], output_dir=sys.argv[2])"
)

SCRIPT_PROGRAMS = (
    Program("imports", ("{here}/imports.py",), printed=says("modules imported"), tiny=True),
    talk("sweep", "recipes.chat_sl.sweep", says("Recommendations written"), *SWEEP),
    talk("sweep_cli", "recipes.chat_sl.sweep.cli", says("Recommendations written"), *SWEEP),
    talk(
        "sweep_analyze", "recipes.chat_sl.sweep.analyze", says("Results written"), "--local-dir", "{before}",
        "--no-plots", "--output-dir", "{folder}", after="sweep",
    ),
    talk(
        "sweep_launch_all", "recipes.chat_sl.sweep.launch_all", says(DENSE), "--dry-run", "--only", DENSE,
    ),
    talk(
        "vlm_sweep", "recipes.vlm_classifier.sweep", says("1 experiments finished"), "experiment_dir={folder}",
        *VISION[:2], "examples_per_class=4", "num_repeats=1", "batch_size=8", "lora_rank=8", "num_parallel=1",
        "run_sampling_evaluator=False",
    ),
    talk(
        "vlm_eval_sweep", "recipes.vlm_classifier.eval_sweep", says("accuracy"), "experiment_dir={before}",
        "output_file={folder}.csv", *VISION, "n_eval=4", after="vlm_sweep",
    ),
    tiny(
        "text_arena_tiny", "recipes.multiplayer_rl.text_arena.train", recorded(REWARD, 1), f"model_name={QWEN}",
        "renderer_name=qwen3_5_disable_thinking", "batch_size=2", "num_train_datapoints=4", "num_test_datapoints=2",
        "max_tokens=8", "max_steps=1", FRESH, *RARE,
    ),
    talk(
        "text_arena_play", "recipes.multiplayer_rl.text_arena.play", says("in"), "mode=eval", "num_games=1",
        f"model_name={QWEN}", "checkpoint_path={sampler}", after="text_arena_tiny",
    ),
    talk("play_w_env", "rl.play_w_env", says("Game Summary", "Total reward"), typed="Is it an apple?\n\n\n" * 40),
    talk(
        "copy_checkpoint", "scripts.copy_checkpoint", says("tinker://"), "--source-path", "{state}", after=TRAINED,
    ),
    Program("adapter", ("-c", DOWNLOAD, "{state}", "{folder}"), after=TRAINED, tiny=True),
    Program(
        "merge_adapter",
        (
            "-m", f"{PACKAGE}.scripts.merge_tinker_adapter_to_hf_model", "--tinker-adapter-path", "{before}",
            "--hf-model", "{runs}/models/qwen3", "--output-path", "{folder}",
        ),
        files=("config.json", "model.safetensors"), after="adapter", tiny=True,
    ),
    talk("audit_log", "scripts.save_audit_log", says(""), "--once", "--output-dir", "{folder}"),
    talk(
        "viz_sft_dataset", "supervised.viz_sft_dataset", says("press enter"), f"model_name={DENSE}",
        "dataset_path=NoRobotsBuilder", typed="\n" * 100,
    ),
    talk("trace", "utils.trace", says("To view the trace"), "{before}/metrics.jsonl", "{folder}.json", after=TRAINED),
    talk("xmux_async_rl_sweep", "xmux.examples.async_rl_sweep", says("Launching"), "--dry_run"),
    talk("xmux_ml_sweep", "xmux.examples.ml_sweep", says(""), "1", "--dry-run"),
    # The other program sleeps for seconds, and fails at random unless it is told not to.
    Program(
        "xmux_run_job", ("-m", f"{PACKAGE}.xmux.run_job", "{job}"), printed=says("Training completed"), tiny=True,
        starts=(f"{PACKAGE}.xmux.examples.fake_train",),
    ),
    Program(
        "capture", ("{here}/capture.py", "{folder}", QWEN), printed=says("answered"), tiny=True,
        starts=(f"{PACKAGE}.capture.proxy.serve", f"{PACKAGE}.capture.store.daemon"),
    ),
    talk("rlhf_pipeline", "recipes.preference.rlhf.rlhf_pipeline", says("Training completed"), "short_name=tiny",
        "batch_size=8", "max_steps=1", "rl_max_tokens=8", "rl_group_size=2", "lora_rank=8", *RARE,
    ),
    talk(
        "sdft_benchmark", "recipes.sdft.benchmark", says("Results"), "data_dir={arrow}", "log_root={folder}",
        "lora_rank=8", "groups_per_batch=4", "max_tokens=8", "max_steps=1", "sft_batch_size=4", "sft_max_steps=1",
        *RARE, FRESH,
    ),
    talk(
        "sdft_continual", "recipes.sdft.run_continual_learning", says("stage"), "data_dir={arrow}", "log_root={folder}",
        f"model_name={DENSE}", "lora_rank=8", "batch_size=4", "max_tokens=64", "methods=sft,sdft_topk",
        "learning_rates=1e-3", "stages=1", "topk=4",
    ),
    tiny(
        "distill_harbor", "recipes.distillation.on_policy_distillation_harbor_multi_turn", agree("teacher_kl", 1),
        f"model_name={QWEN}", f"teacher_model={QWEN}", "renderer_name=qwen3_5_disable_thinking", "task_name=stand-in",
        "sandbox_factory=sandboxes:local", "max_turns=2", *GROUPS[:3], "max_steps=1", *SMALL, *RARE,
    ),
)  # fmt: skip
