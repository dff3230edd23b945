package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/wire"
)

// ProcessConnected says that a process's newest connection is Link. With New a process begins: its key was not in use.
type ProcessConnected struct {
	Process fleet.Key
	Link    uint64
	SDK     string
	New     bool
	ReadyBy domain.ContactTime // with New
	Token   uint32             // with New: generation of the auth token that it was started with
}

// ProcessLinkLost says that the process's last connection is gone.
type ProcessLinkLost struct {
	Process fleet.Key
	LostBy  domain.ContactTime
}

// ProcessActivated says that the process is ready for a game session on a port. With New a process begins that reuses
// the key, on the connection Link.
type ProcessActivated struct {
	Process     fleet.Key
	Port        uint16
	LogPaths    []string
	SDK, Tool   string
	Request     uint64
	New         bool
	UnhealthyBy domain.ContactTime
	Link        uint64
}

// ProcessHealthChanged says what the process's heartbeats say now. UnhealthyBy is zero while they are good.
type ProcessHealthChanged struct {
	Process     fleet.Key
	Health      fleet.Health
	UnhealthyBy domain.ContactTime
}

// ProcessSettled says that the process may have game sessions although no heartbeat has come yet.
type ProcessSettled struct{ Process fleet.Key }

// ProcessRefreshing says that the process is about to be told to open another connection, or that it has changed over or will not.
type ProcessRefreshing struct {
	Process fleet.Key
	Begun   bool
}

// ProcessTerminationAsked says that the process is told to end.
type ProcessTerminationAsked struct {
	Process fleet.Key
	By      domain.ContactTime
	Time    domain.Time // By on the wall clock, as the process is told
	Why     fleet.EndReason
}

// ProcessEnded is the end of a process. Its game session ended before, in the same transaction.
type ProcessEnded struct {
	Process  fleet.Key
	Reason   fleet.EndReason
	Request  uint64
	ForgetAt domain.Time
}

// ProcessForgotten says that an ended process is no longer remembered.
type ProcessForgotten struct{ Process fleet.Key }

func (*ProcessConnected) kind() Kind        { return KindProcessConnected }
func (*ProcessLinkLost) kind() Kind         { return KindProcessLinkLost }
func (*ProcessActivated) kind() Kind        { return KindProcessActivated }
func (*ProcessHealthChanged) kind() Kind    { return KindProcessHealthChanged }
func (*ProcessSettled) kind() Kind          { return KindProcessSettled }
func (*ProcessRefreshing) kind() Kind       { return KindProcessRefreshing }
func (*ProcessTerminationAsked) kind() Kind { return KindProcessTerminationAsked }
func (*ProcessEnded) kind() Kind            { return KindProcessEnded }
func (*ProcessForgotten) kind() Kind        { return kindProcessForgotten }

// Fields of the event.
func (e *ProcessConnected) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Process, true, (*fleet.Key).Fields)
	c.Fixed64(2, &e.Link)
	c.String(3, &e.SDK)
	c.Bool(4, &e.New)
	wire.Int(c, 5, &e.ReadyBy)
	wire.Int(c, 6, &e.Token)
}

// Fields of the event.
func (e *ProcessLinkLost) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Process, true, (*fleet.Key).Fields)
	wire.Int(c, 2, &e.LostBy)
}

// Fields of the event.
func (e *ProcessActivated) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Process, true, (*fleet.Key).Fields)
	wire.Int(c, 2, &e.Port)
	c.Strings(3, &e.LogPaths)
	c.String(4, &e.SDK)
	c.String(5, &e.Tool)
	c.Fixed64(6, &e.Request)
	c.Bool(7, &e.New)
	wire.Int(c, 8, &e.UnhealthyBy)
	c.Fixed64(9, &e.Link)
}

// Fields of the event.
func (e *ProcessHealthChanged) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Process, true, (*fleet.Key).Fields)
	wire.Int(c, 2, &e.Health)
	wire.Int(c, 3, &e.UnhealthyBy)
}

// Fields of the event.
func (e *ProcessSettled) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Process, true, (*fleet.Key).Fields)
}

// Fields of the event.
func (e *ProcessRefreshing) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Process, true, (*fleet.Key).Fields)
	c.Bool(2, &e.Begun)
}

// Fields of the event.
func (e *ProcessTerminationAsked) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Process, true, (*fleet.Key).Fields)
	wire.Int(c, 2, &e.By)
	wire.Int(c, 3, &e.Time)
	wire.Int(c, 4, &e.Why)
}

// Fields of the event.
func (e *ProcessEnded) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Process, true, (*fleet.Key).Fields)
	wire.Int(c, 2, &e.Reason)
	c.Fixed64(3, &e.Request)
	wire.Int(c, 4, &e.ForgetAt)
}

// Fields of the event.
func (e *ProcessForgotten) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Process, true, (*fleet.Key).Fields)
}
