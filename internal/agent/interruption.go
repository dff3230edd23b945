package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

const (
	interruptionEvery = time.Second
	// interruptionSpare is how long before the host is taken away the agent ends the last server processes, as the official agent does.
	interruptionSpare = 30 * time.Second
	interruptionBytes = 256
)

// lookForInterruption drains the host once Config.InterruptionFile announces that it will be taken away. The drain lasts until the agent ends.
func (a *Agent) lookForInterruption(now time.Time) {
	if a.config.InterruptionFile == "" || a.interrupted || now.Sub(a.looked) < interruptionEvery {
		return
	}
	a.looked = now
	at, err := readInterruption(a.config.InterruptionFile)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil { // it may be in the middle of being written
		a.config.Log.Warn("the interruption file cannot be used: the agent reads it again", "error", err)
		return
	}
	a.interrupted = true
	a.drain(at.Add(-interruptionSpare), "the host is reclaimed at "+at.Format(time.RFC3339))
}

// readInterruption reads an instant, optionally followed by a newline.
func readInterruption(file string) (at time.Time, err error) {
	in, err := os.Open(file)
	if err != nil {
		return at, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, interruptionBytes))
	if err != nil {
		return at, err
	}
	if at, err = time.Parse(time.RFC3339, strings.TrimSpace(string(text))); err != nil {
		return at, fmt.Errorf("%s: %.40q; want an instant such as 2015-01-05T18:02:00Z", file, text)
	}
	return at, nil
}
