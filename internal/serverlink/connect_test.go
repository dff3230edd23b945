package serverlink

import (
	"testing"
	"time"
)

// Strangers decide how often the door refuses, not how much the log says.
func TestRefusalsDoNotFloodTheLog(t *testing.T) {
	var x refusals
	now := time.Unix(1_700_000_000, 0)
	written := 0
	for range 1000 {
		if write, silent := x.note(now); write {
			written++
			if silent != 0 {
				t.Errorf("%d were silent before any was", silent)
			}
		}
	}
	if written != refusalsLogged {
		t.Errorf("%d of 1000 refusals are logged, want %d", written, refusalsLogged)
	}
	if write, silent := x.note(now.Add(refusalsWithin)); !write || silent != 1000-refusalsLogged {
		t.Errorf("later: logged %t with %d silent ones before it, want %d", write, silent, 1000-refusalsLogged)
	}
	if write, silent := x.note(now.Add(refusalsWithin)); !write || silent != 0 {
		t.Errorf("after that: logged %t with %d silent ones before it", write, silent)
	}
}
