package gameserver

import (
	"bytes"
	"errors"
	"runtime"
	"sync/atomic"
	"time"
)

// heartbeats keeps the official SDK from being destroyed during one of its heartbeats. A heartbeat whose health check has returned uses the
// connection, which Destroy sets to nil, without a check: the program would end with a panic.
type heartbeats struct {
	begun atomic.Bool // the process was ready
	shut  atomic.Bool // health checks no longer return
}

const (
	heartbeatPatience = 5 * time.Second // after the health check, a heartbeat needs only processor time until it is sent
	stacksMax         = 64 << 20        // bytes
)

var errHeartbeat = errors.New("gameserver: a heartbeat of the SDK does not proceed; the connection stays open until the program exits")

// guard returns a health check that returns only before the SDK is destroyed. A later one blocks forever, because Destroy ends the heartbeat
// that would read its result.
func (h *heartbeats) guard(healthy func() bool) func() bool {
	h.begun.Store(true)
	return func() bool {
		result := healthy()
		if h.shut.Load() {
			select {}
		}
		return result
	}
}

// without runs destroy when no heartbeat is between its health check and the connection. If one stays there, it fails and does not run destroy.
func (h *heartbeats) without(destroy func() error) error {
	if !h.begun.Load() {
		return destroy()
	}
	h.shut.Store(true)
	for end := time.Now().Add(heartbeatPatience); beating(stacks()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return errHeartbeat
		}
	}
	return destroy()
}

// stacks returns the stacks of all goroutines, up to stacksMax bytes.
func stacks() []byte {
	for size := 64 << 10; ; size *= 4 {
		text := make([]byte, min(size, stacksMax))
		if n := runtime.Stack(text, true); n < len(text) || size >= stacksMax {
			return text[:n]
		}
	}
}

// beating reports whether a heartbeat is about to use the connection. Only the stacks of the SDK's goroutines show that.
func beating(stacks []byte) bool {
	for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		frames, _, _ := bytes.Cut(stack, []byte("\ncreated by "))
		state, frames, _ := bytes.Cut(frames, []byte("\n"))
		top, _, _ := bytes.Cut(frames, []byte("\n"))
		in := func(frames []byte, function string) bool { return bytes.Contains(frames, []byte(function)) }
		waits := func(how string) bool { return bytes.Contains(state, []byte("["+how)) }
		switch {
		case !in(frames, ").heartbeatServerProcess"):
		case in(frames, ").HandleRequest("): // it has the connection
		case in(frames, ").onHealth("): // guard stops it
		case in(top, "(*heartbeats).guard") && waits("select"): // guard has stopped it
		case in(top, ").heartbeatServerProcess.") && waits("chan send"): // a health check that took too long: its heartbeat is over
		case in(top, ").heartbeatServerProcess(") && waits("select"): // for a health check, which guard stops
		default:
			return true
		}
	}
	return false
}
