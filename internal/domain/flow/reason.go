package flow

import "fmt"

// Reason is why something happened to a player, a party, a ticket or a game instance. All of them share one set, whose
// numbers are in the journal and never change.
type Reason uint8

// The reasons.
const (
	NoReason Reason = iota
	Left
	Switched
	WasKicked
	WentOffline
	PartyExpired
	ShutDown
	Disbanded
	Banned
	Expired
	Cancelled
	InviteDeclined
	PartyGone
	Requested
	MemberLeft
	MemberKicked
	MemberOffline
	MemberRemoved
	PartyShutDown
	NotReady
	SearchTimeout
	AcceptDeclined
	AcceptTimeout
	EngineFailed
	TicketSuperseded
	QueueClosed
	Version
	AllocationTimeout
	NoCapacity
	AllocationCancelled
	HostError
	GameEnded
	GameTerminated
	HostLost
	DeclinedReconnect
	NoShow
	Disconnected
	ReconnectExpired
	TooManyDisconnects
	Removed
	Released
	SlotLost
	AbsoluteTimeout
	ByTheOperator
	Finished
	Terminated
	AllocationFailed
	Allocated
	Resent
	Reconnected
	Takeover
	RemovedAFK
	RemovedKicked
	RemovedEliminated
	lastReason
)

var reasonNames = [...]string{
	NoReason: "", Left: "LEFT", Switched: "SWITCHED", WasKicked: "KICKED", WentOffline: "OFFLINE", PartyExpired: "PARTY_EXPIRED",
	ShutDown: "SHUT_DOWN", Disbanded: "DISBANDED", Banned: "BANNED", Expired: "EXPIRED", Cancelled: "CANCELLED", InviteDeclined: "DECLINED",
	PartyGone: "PARTY_GONE", Requested: "REQUESTED", MemberLeft: "MEMBER_LEFT", MemberKicked: "MEMBER_KICKED",
	MemberOffline: "MEMBER_OFFLINE", MemberRemoved: "MEMBER_REMOVED", PartyShutDown: "PARTY_SHUT_DOWN", NotReady: "NOT_READY",
	SearchTimeout: "TIMEOUT", AcceptDeclined: "ACCEPT_DECLINED", AcceptTimeout: "ACCEPT_TIMEOUT", EngineFailed: "ENGINE",
	TicketSuperseded: "TICKET_SUPERSEDED", QueueClosed: "QUEUE_CLOSED", Version: "VERSION", AllocationTimeout: "TIMEOUT",
	NoCapacity: "NO_CAPACITY", AllocationCancelled: "CANCELLED", HostError: "HOST_ERROR", GameEnded: "GAME_ENDED",
	GameTerminated: "GAME_TERMINATED", HostLost: "HOST_LOST", DeclinedReconnect: "DECLINED", NoShow: "NO_SHOW",
	Disconnected: "DISCONNECTED", ReconnectExpired: "RECONNECT_EXPIRED", TooManyDisconnects: "TOO_MANY_DISCONNECTS",
	Removed: "REMOVED", Released: "RELEASED", SlotLost: "SLOT_LOST", AbsoluteTimeout: "ABSOLUTE_TIMEOUT", ByTheOperator: "OPERATOR",
	Finished: "FINISHED", Terminated: "TERMINATED", AllocationFailed: "ALLOCATION_FAILED", Allocated: "ALLOCATED", Resent: "RESENT",
	Reconnected: "RECONNECT", Takeover: "TAKEOVER", RemovedAFK: "REMOVED", RemovedKicked: "REMOVED", RemovedEliminated: "REMOVED",
}

// String returns the reason in the player API's spelling.
func (r Reason) String() string {
	if r < lastReason {
		return reasonNames[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}
