"""The form of a commit message, and the workflow for GitHub."""

import yaml

import support
from jobs import catalogue

WHY = "\n\nA longer wait would hide it."
X = "x"
MESSAGES = [
    (0, None, f"ring: refuse a header of 0 bytes{WHY}"),
    (0, None, f"lib, fuzz: drop the second copy{WHY}"),
    (0, None, f"ring: {X * 59}{WHY}"),
    (1, "it has 66 characters: at most 65", f"ring: {X * 60}{WHY}"),
    (1, "begin with an area", f"Refuse a header of 0 bytes{WHY}"),
    (1, "begin with an imperative .*, not 'Fixing'", f"ring: Fixing a header of 0 bytes{WHY}"),
    (1, "end without a full stop", f"ring: refuse a header of 0 bytes.{WHY}"),
    (1, "leave the second line empty", "ring: refuse it\nfor good\n\nWhy."),
    (1, "say why, in a body", "ring: refuse it\n\n# Please enter the commit message"),
    (
        1,
        "say why, in a body",
        "ring: refuse it\n# ------------------------ >8 ------------------------\n\ndiff",
    ),
    (0, None, "Merge branch 'x'"),
]


class MessageTest(support.Case):
    def test_the_form_of_a_message(self):
        for status, last, message in MESSAGES:
            with self.subTest(message=message):
                self.write("message", f"{message}\n")
                self.expect(status, last or "^$", "ci/hooks/commit-msg", "message")


class FormatHookTest(support.Case):
    def test_a_commit_is_refused_if_a_file_differs(self):
        self.program("git", "#!/bin/sh\nprintf 'a.cc\\0a.sh\\0a.py\\0'\n")
        for name in ("a.cc", "a.sh", "a.py"):
            self.write(name, "")
        for name in ("clang-format-19", "shfmt", "shellcheck", "black"):
            self.program(name, '#!/bin/sh\n[ ! -e "$FOLDER/differs" ]\n')
        self.expect(0, "^$", "ci/hooks/pre-commit")
        self.write("differs", "")
        self.expect(1, "'ci/run format --fix' rewrites them$", "ci/hooks/pre-commit")


class WorkflowTest(support.Case):
    """Short enough to read, with every job and with the folder of their results."""

    def test_the_workflow_for_github(self):
        lines = [
            line
            for line in self.read("ci/github.yml").splitlines(keepends=True)
            if not line.startswith("#")
        ]
        self.assertLessEqual(len(lines), 30)
        job = yaml.safe_load("".join(lines))["jobs"]["test"]
        self.assertEqual(job["strategy"]["matrix"]["job"], [*catalogue.CI, "conform"])
        self.assertEqual(job["env"], {"PERFRING_REQUIRE_LIVE": 1})
        steps = job["steps"]
        paths = [step.get("with", {}).get("path") for step in steps]
        self.assertIn("ci-results/", paths)
        commands = [step["run"] for step in steps if "run" in step]
        self.assertEqual(commands[-1], ".ci/run ${{ matrix.job }}")
