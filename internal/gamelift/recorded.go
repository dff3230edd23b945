package gamelift

import (
	"net/http"
	"slices"

	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/internal/audit"
)

// alsoRecorded are the operations in the audit log that others than administrators may call: what ends a running game session, and which computes
// there are. All other operations of backends are about single players and games.
var alsoRecorded = []string{"DeregisterCompute", "RegisterCompute", "TerminateGameSession"}

// isRecorded reports whether an operation is in the audit log. One that changes nothing has no entry there.
func isRecorded(op *operation) bool {
	return op.access == administer || slices.Contains(alsoRecorded, op.name)
}

// originOf is the origin of a recorded request. It refuses a reason that is none.
func originOf(r *http.Request, caller *Caller, operation string) (audit.Origin, smithy.APIError) {
	reason, err := audit.Reason(r)
	if err != nil {
		return audit.Origin{}, invalidRequestError(new(err.Error()))
	}
	return audit.Origin{
		Principal: caller.ID, Door: audit.DoorAPI, Address: caller.Address, Agent: r.UserAgent(), Operation: operation, Reason: reason,
	}, nil
}

// noteRefused counts a refusal, if the caller is the cause of it.
func (h *Handler) noteRefused(by audit.Origin, refused smithy.APIError) {
	if refused == nil {
		return
	}
	if code := refused.ErrorCode(); code != codeThrottling && statusOf(code) < http.StatusInternalServerError {
		h.audit.RefusedAs(by, code)
	}
}
