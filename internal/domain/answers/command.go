package answers

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Form writes and reads the answer of a command. Package commandcodec has it; this room does not know the commands.
type Form interface {
	// Answer returns what execution has changed in the command.
	Answer(cmd kernel.Command) ([]byte, error)
	// Fill sets in the command what an answer says.
	Fill(cmd kernel.Command, answer []byte) error
}

// Once is a command that has its effect once: a request that has changed something already gets its first answer.
type Once struct {
	kernel.Command
	Asker   domain.UUID
	Request uint64 // its number among those of the asker
	Settled uint64 // the asker will not ask again for lower numbers
	Form    Form
}

// Decide executes the command, or fills in its remembered answer.
func (cmd *Once) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if a := t.askers[cmd.Asker]; a != nil {
		if cmd.Request < a.Settled {
			return domain.Refuse(domain.Conflict, "request %d of a node comes late: all up to %d are settled", cmd.Request, a.Settled)
		}
		if answer, ok := a.answers[cmd.Request]; ok {
			return fill(cmd, answer)
		}
	}
	t.Cmd = cmd.Command
	if err := cmd.Command.Decide(k); err != nil {
		return err
	}
	t.once = cmd
	t.AtEnd(Room)
	return nil
}

// Unwrap returns the command itself.
func (cmd *Once) Unwrap() kernel.Command { return cmd.Command }

func fill(cmd *Once, answer []byte) error {
	if len(answer) > 0 && cmd.Form.Fill(cmd.Command, answer) == nil {
		return nil
	}
	return domain.Refuse(domain.Conflict, "%T was carried out, but its answer cannot be repeated", cmd.Command)
}

// Settle remembers the answer, which is complete now. One that cannot be written is remembered as empty: the effect stands.
func (t *Tx) Settle() {
	once := t.once
	t.once = nil
	if !t.Emitted() {
		return
	}
	answer, err := once.Form.Answer(once.Command)
	if err != nil {
		answer = nil
	}
	t.Emit(&CommandAnswered{Answer{once.Asker, once.Request, answer}, once.Settled})
}

// Reset forgets a command that was refused.
func (t *Tx) Reset() { t.once = nil }

// ForgetAsker removes an asker with its answers. Only the engine gives it, for a process that has been silent for longer than anything it
// sent can be on its way.
type ForgetAsker struct{ Asker domain.UUID }

// Decide emits AskerForgotten for a known asker.
func (cmd *ForgetAsker) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if t.askers[cmd.Asker] != nil {
		t.Emit(&AskerForgotten{cmd.Asker})
	}
	return nil
}
