package identity

import (
	"crypto/hmac"
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
	at := strconv.FormatInt(expires.Unix(), 10)
	return at + "." + hex.EncodeToString(s.derive([]byte("session-log\x00" + string(use) + "\x00" + at + "\x00" + name))[:16])
}

// ChecksLogTicket reports whether a ticket is valid for a use of the archive with a name.
func (s CellSecret) ChecksLogTicket(ticket string, use LogUse, name string, now time.Time) bool {
	text, _, _ := strings.Cut(ticket, ".")
	at, err := strconv.ParseInt(text, 10, 64)
	expires := time.Unix(at, 0)
	return err == nil && now.Before(expires) && s.Accepts("ticket for the log of a game session", func(g CellSecret) bool {
		return hmac.Equal([]byte(ticket), []byte(g.LogTicket(use, name, expires)))
	})
}
