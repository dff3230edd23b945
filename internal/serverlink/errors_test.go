package serverlink

import (
	"errors"
	"testing"

	"github.com/musterhq/muster/internal/domain"
)

func TestEveryReasonHasAStatus(t *testing.T) {
	for _, reason := range domain.Reasons() {
		status, message := answerStatus(domain.Refuse(reason, "why"))
		if status < 400 || status > 499 || message != "why" {
			t.Errorf("%s: got %d %q, want a status of 400 to 499 and the detail", reason, status, message)
		}
		if status := connectStatus(domain.Refuse(reason, "why")); status != 403 && status != 429 && (reason != domain.NodeLost || status != 503) {
			t.Errorf("%s: a connection is refused with %d", reason, status)
		}
	}
	if len(answerStatuses) != len(domain.Reasons()) {
		t.Errorf("%d statuses for %d reasons", len(answerStatuses), len(domain.Reasons()))
	}
	if status, message := answerStatus(errors.New("disk on fire")); status != 500 || message == "disk on fire" {
		t.Errorf("got %d %q; the cause is for the log only", status, message)
	}
}
