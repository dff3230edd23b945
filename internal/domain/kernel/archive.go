package kernel

import (
	"github.com/musterhq/muster/internal/domain"
)

// ClaimKind is the kind of record that a Claim names, or that an EndedRecord is.
type ClaimKind uint8

// The kinds.
const (
	Nothing ClaimKind = iota
	AGameSession
	APlayerSession
	APlacement
	ATicket
	AChange // of a player's keys
	AnAuditEntry
)

// Claim is a command whose caller may have chosen the id of the new record. The engine looks up such an id in the archive before it
// queues the command.
type Claim interface {
	Command
	// Claimed returns the kind and id of the new record; Nothing if the caller did not choose the id.
	Claimed() (ClaimKind, string)
	// SetArchived stores the record found in the archive, or nil if there is none. at is Kernel.Forgotten at the time of the look-up.
	SetArchived(data []byte, at uint64) error
}

// ClaimIn returns a command as a Claim, even if other commands wrap it.
func ClaimIn(cmd Command) (Claim, bool) {
	claim, ok := Unwrapped(cmd).(Claim)
	return claim, ok
}

// Unwrapped returns the command that others wrap.
func Unwrapped(cmd Command) Command {
	for {
		w, ok := cmd.(interface{ Unwrap() Command })
		if !ok {
			return cmd
		}
		cmd = w.Unwrap()
	}
}

// ArchivedID tells whether the archive has the id that a command claims. The engine fills it in.
type ArchivedID struct {
	Archived   bool
	ArchivedAt uint64 // Kernel.Forgotten at the time of the look-up
}

func (x *ArchivedID) SetArchived(data []byte, at uint64) error {
	x.Archived, x.ArchivedAt = data != nil, at
	return nil
}

// EndedRecord is an ended record for the archive.
type EndedRecord struct {
	Kind           ClaimKind // Nothing: it need not be archived
	ID             string    // session.ID, a placement's or ticket's id, the sixteen bytes of a player session's UUID, or the number of a flow.Change
	Created, Ended domain.Time
	Fleet          string      // of a game session
	GameID, Player string      // GameID: of a player session, and the group of an audit entry; Player: of a player session or a flow.Change
	Until          domain.Time // how long the archive keeps it; 0: the usual retention
	Data           []byte      // decoded by the room: hosting.DecodeGameSession and so on
}

// Counts reports whether Kernel.Forgotten counts the record.
func (e *EndedRecord) Counts() bool {
	return e.Kind != APlayerSession && e.Kind != AChange && e.Kind != AnAuditEntry
}

// RequestHash hashes a request id (FNV-1a, 64 bits, never zero). The changed record stores the hash, so that a repeated request gets the
// same answer.
func RequestHash(id string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	return max(h, 1)
}
