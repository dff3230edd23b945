// Package exit has the record of how a server process ended, as the agent on its host saw it. Processes and game sessions both keep it.
package exit

import (
	"fmt"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Report is how a server process ended. It is never changed.
type Report struct {
	Reason     string // a termination reason of the agent protocol
	HasCode    bool
	Code       int32  // exit code, with HasCode
	Signal     string // the signal that ended the process
	Output     string // the end of its output, at most OutputMax bytes
	PeakMemory int64  // bytes; 0: not measured
	Memory     int64  // bytes, when it was last measured
	CoreFile   string // path on the host
	At         domain.Time
}

// OutputMax is how many bytes of a process's last output the state keeps. The host's agent has more of it for a while.
const OutputMax = 8 << 10

// Fields implements wire.Message.
func (r *Report) Fields(c *wire.Codec) {
	c.Shared(1, &r.Reason)
	c.Bool(2, &r.HasCode)
	wire.Int(c, 3, &r.Code)
	c.Shared(4, &r.Signal)
	c.String(5, &r.Output)
	wire.Int(c, 6, &r.PeakMemory)
	wire.Int(c, 7, &r.Memory)
	c.String(8, &r.CoreFile)
	wire.Int(c, 9, &r.At)
}

// How describes how the process ended, without its output: "signal SIGSEGV, core file /var/core/4711".
func (r *Report) How() string {
	var parts []string
	switch {
	case r.Signal != "":
		parts = append(parts, "signal "+r.Signal)
	case r.HasCode:
		parts = append(parts, fmt.Sprintf("exit code %d", r.Code))
	default:
		parts = append(parts, strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(r.Reason, "SERVER_PROCESS_"), "_", " ")))
	}
	switch {
	case r.PeakMemory > 0:
		parts = append(parts, fmt.Sprintf("at most %d MiB of memory", (r.PeakMemory+1<<19)>>20))
	case r.Memory > 0:
		parts = append(parts, fmt.Sprintf("%d MiB of memory", (r.Memory+1<<19)>>20))
	}
	if r.CoreFile != "" {
		parts = append(parts, "core file "+r.CoreFile)
	}
	return strings.Join(parts, ", ")
}

// LastLines returns the last lines of the output, at most `most` bytes. It returns whole lines if at least one fits.
func (r *Report) LastLines(most int) string {
	text := strings.TrimRight(r.Output, "\r\n\t ")
	if len(text) <= most {
		return text
	}
	text = excerpt.End(text, most)
	if _, whole, ok := strings.Cut(text, "\n"); ok {
		return whole
	}
	return text
}
