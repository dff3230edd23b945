package gamelift

import (
	"net/http"
	"slices"

	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/internal/audit"
)

// alsoRecorded are the operations recorded in the audit log that not only administrators may call: those that end a running game session or
// change the computes. All other operations of backends are about single players and games.
var alsoRecorded = []string{"DeregisterCompute", "RegisterCompute", "TerminateGameSession"}

// isRecorded reports whether the audit log records an operation. Operations that change nothing have no entries.
func isRecorded(op *operation) bool {
	return op.access == administer || slices.Contains(alsoRecorded, op.name)
}

// originOf returns the origin of a recorded request. It refuses an invalid reason.
func originOf(r *http.Request, caller *Caller, operation string) (audit.Origin, smithy.APIError) {
	reason, err := audit.Reason(r)
	if err != nil {
		return audit.Origin{}, invalidRequestError(new(err.Error()))
	}
	return audit.Origin{
		Principal: caller.ID, Door: audit.DoorAPI, Address: caller.Address, Agent: r.UserAgent(), Operation: operation, Reason: reason,
	}, nil
}

// noteRefused counts a refusal that is the caller's fault.
func (h *Handler) noteRefused(by audit.Origin, refused smithy.APIError) {
	if refused == nil {
		return
	}
	if code := refused.ErrorCode(); code != codeThrottling && statusOf(code) < http.StatusInternalServerError {
		h.audit.RefusedAs(by, code)
	}
}
