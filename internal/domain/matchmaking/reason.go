package matchmaking

// Reason is why a ticket has its status; it determines StatusReason and StatusMessage.
type Reason uint8

// The cloud service's reasons are those found in its events; the others are our own, see B113.
const (
	NoReason Reason = iota
	ProposedMatchRejected
	ProposedMatchTimedOut
	PlacementTimedOut
	AcceptanceRejected
	AcceptanceTimedOut
	RequestTimedOut
	StoppedByRequest
	DuplicatePlayer
	UnexpectedError
	IncompatibleRuleSet
	GameSessionLost
	PlacementFailed  // the ticket continues to search
	Replaced         // by a newer backfill request for its game session
	ReplacedByServer // the same, requested by the server process, which needs no notice
)

var reasonTexts = [...]struct{ code, message string }{
	ProposedMatchRejected: {"ProposedMatchRejected", "A player of another ticket rejected the proposed match."},
	ProposedMatchTimedOut: {"ProposedMatchTimedOut", "The players of another ticket did not accept the proposed match in time."},
	PlacementTimedOut:     {"PlacementTimedOut", "No game session was found in time; the search goes on."},
	PlacementFailed:       {"PlacementFailed", "The game session could not be placed; the search goes on."},
	AcceptanceRejected:    {"AcceptanceRejected", "A player of the ticket rejected the proposed match."},
	AcceptanceTimedOut:    {"AcceptanceTimedOut", "A player of the ticket did not accept the proposed match in time."},
	Replaced:              {"Cancelled", "Cancelled due to duplicate player"},
	ReplacedByServer:      {"Cancelled", "Cancelled due to duplicate player"},
	RequestTimedOut:       {"TimedOut", "Removed from matchmaking due to timing out."},
	StoppedByRequest:      {"Cancelled", "Cancelled by request."},
	DuplicatePlayer:       {"Cancelled", "Cancelled due to duplicate player"},
	UnexpectedError:       {"UNEXPECTED_ERROR", "An unexpected error was encountered during match placing."},
	IncompatibleRuleSet:   {"INCOMPATIBLE_RULE_SET", "The configuration has another rule set now, and a player's attributes do not fit it."},
	GameSessionLost:       {"UNEXPECTED_ERROR", "The game session was not found, or was in a state which wouldn't accept new player sessions."},
}

// Code returns the StatusReason; empty if there is none.
func (r Reason) Code() string { return reasonTexts[r].code }

// Message returns the StatusMessage of a ticket. arn is that of its game session.
func (r Reason) Message(arn string) string {
	if r == GameSessionLost {
		if arn == "" {
			arn = "null"
		}
		return "The game session " + arn + " was not found, or was in a state which wouldn't accept new player sessions."
	}
	return reasonTexts[r].message
}
