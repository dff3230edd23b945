package identity

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// LogUse is the purpose of a ticket for the log of a game session.
type LogUse string

// The uses of such tickets.
const (
	LogFetch  LogUse = "fetch"
	LogUpload LogUse = "upload"
)

// LogTicket returns a ticket that allows a client to fetch or upload the archive with a name until it expires.
func (s CellSecret) LogTicket(use LogUse, name string, expires time.Time) string {
	return s.ticket(use.kind(), name, expires)
}

// ChecksLogTicket reports whether a ticket is valid for a use of the archive with a name.
func (s CellSecret) ChecksLogTicket(ticket string, use LogUse, name string, now time.Time) bool {
	return s.checksTicket("ticket for the log of a game session", ticket, use.kind(), name, now)
}

func (use LogUse) kind() string { return "session-log\x00" + string(use) }

const buildTicket = "build-ticket"

// BuildTicket returns a ticket that allows hosts to fetch the build with a manifest until it expires.
func (s CellSecret) BuildTicket(manifest string, expires time.Time) string {
	return s.ticket(buildTicket, manifest, expires)
}

// ChecksBuildTicket reports whether a ticket is valid for a manifest.
func (s CellSecret) ChecksBuildTicket(ticket, manifest string, now time.Time) bool {
	return s.checksTicket("ticket for a build", ticket, buildTicket, manifest, now)
}

// ticket returns a ticket of a kind for the thing with a name: the second of its expiry, and an authentication code.
func (s CellSecret) ticket(kind, name string, expires time.Time) string {
	at := strconv.FormatInt(expires.Unix(), 10)
	return at + "." + hex.EncodeToString(s.derive([]byte(kind + "\x00" + at + "\x00" + name))[:16])
}

// checksTicket reports whether a ticket is valid. purpose is that of Accepts.
func (s CellSecret) checksTicket(purpose, ticket, kind, name string, now time.Time) bool {
	text, _, _ := strings.Cut(ticket, ".")
	at, err := strconv.ParseInt(text, 10, 64)
	expires := time.Unix(at, 0)
	return err == nil && now.Before(expires) && s.Accepts(purpose, func(g CellSecret) bool { return Equal(ticket, g.ticket(kind, name, expires)) })
}
