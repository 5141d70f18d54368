// Package clients runs the openai and anthropic packages for Python and Node,
// unmodified, against a real router with simulated engines behind it. The
// scripts hold the checks, the tests start the processes.
//
// The packages live in .venv and node_modules of this folder, where .ci/run
// installs them from requirements.txt and package-lock.json. Where they are
// missing the tests skip and say so; with CI=true they fail.
package clients
