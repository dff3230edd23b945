package matchmaking

import (
	"github.com/musterhq/muster/internal/domain/wire"
)

// DecodeTicket reads the Data of an EndedRecord.
func DecodeTicket(data []byte) (Ticket, error) {
	var t Ticket
	err := wire.Unmarshal(data, &t)
	return t, err
}
