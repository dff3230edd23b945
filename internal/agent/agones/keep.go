//go:build !quick

package agones

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/musterhq/muster/internal/atomicfile"
)

func recall(file string) (m Memory, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// keepEvery is the minimum time between two writes of the file, unless the life of the process has changed. So a game that changes its labels
// constantly does not keep the disk busy.
const keepEvery = time.Second

// keep saves the memory when it has changed.
func (p *Process) keep(ctx context.Context) {
	for written, at := int64(-1), (time.Time{}); ; {
		m, changed := p.look()
		pause := keepEvery - time.Since(at)
		switch {
		case m.Version == written:
			if ctx.Err() != nil {
				return
			}
			pause = time.Hour
		case ctx.Err() != nil || pause <= 0 || m.Turn > written:
			if text, err := json.Marshal(m); err != nil {
				p.log.Error("state of an Agones server cannot be written", "error", err)
			} else if err := atomicfile.Write(p.config.File, text, 0o600); err != nil {
				p.log.Error("state of an Agones server cannot be written: the next agent will not have it", "error", err)
			}
			written, at = m.Version, time.Now()
			continue
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(pause):
		}
	}
}
