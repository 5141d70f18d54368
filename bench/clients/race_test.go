//go:build race

package clients

// raceEnabled says that the tests run under the race detector.
const raceEnabled = true
