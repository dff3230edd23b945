package answers

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Form encodes and decodes the answer of a command. Package commandcodec implements it; this room does not know the commands.
type Form interface {
	// Answer returns what execution has changed in the command.
	Answer(cmd kernel.Command) ([]byte, error)
	// Fill sets the command's fields to the values in an answer.
	Fill(cmd kernel.Command, answer []byte) error
}

// Once wraps a command that takes effect only once: a request that has already changed something gets its first answer again.
type Once struct {
	kernel.Command
	Asker   domain.UUID
	Request uint64 // its number among those of the asker
	Attempt uint64 // from 1: how often the asker has sent it
	Settled uint64 // the asker will not send lower numbers again
	Form    Form

	// Result, valid even if the command is refused.
	Decided bool   // a refusal, if any, comes from the command itself
	Changed bool   // the request has taken effect, now or in an earlier attempt
	Lost    bool   // the request may have taken effect, but its answer is no longer known
	Answer  []byte // of a request that has taken effect; empty: it could not be encoded
}

// Decide executes the command, or fills in its stored answer.
func (cmd *Once) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if done, err := t.before(cmd); done {
		return err
	}
	cmd.Decided = true
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

// before checks whether the request already has an outcome.
func (c *State) before(cmd *Once) (done bool, err error) {
	a := c.askers[cmd.Asker]
	if a == nil {
		return false, nil
	}
	if cmd.Request < a.Settled {
		cmd.Lost = true
		return true, domain.Refuse(domain.Conflict, "request %d of a node comes late: all below %d are settled", cmd.Request, a.Settled)
	}
	x, ok := a.answers[cmd.Request]
	switch {
	case !ok || x.void != 0 && cmd.Attempt > x.void:
		return false, nil
	case x.void != 0:
		cmd.Lost = true
		return true, domain.Refuse(domain.Conflict, "attempt %d of a request comes late: attempt %d had no effect", cmd.Attempt, x.void)
	case len(x.data) == 0 || cmd.Form.Fill(cmd.Command, x.data) != nil:
		cmd.Lost = true
		return true, domain.Refuse(domain.Conflict, "%T was carried out, but its answer cannot be repeated", cmd.Command)
	}
	cmd.Decided, cmd.Changed, cmd.Answer = true, true, x.data
	return true, nil
}

// Settle stores the answer, which is now complete. If the answer cannot be encoded, Settle stores an empty one, because the effect stands.
func (t *Tx) Settle() {
	once := t.once
	t.once = nil
	if !t.Emitted() {
		return
	}
	once.Changed = true
	if answer, err := once.Form.Answer(once.Command); err == nil {
		once.Answer = answer
	}
	t.Emit(&CommandAnswered{Answer{Asker: once.Asker, Request: once.Request, Data: once.Answer}, once.Settled})
}

// Reset drops a refused command.
func (t *Tx) Reset() { t.once = nil }

// Void records that a request had no effect up to this attempt. If an earlier attempt has taken effect meanwhile, the command gets its answer.
type Void struct{ *Once }

func (cmd *Void) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	cmd.Decided = false
	if done, err := t.before(cmd.Once); done {
		return err
	}
	t.Emit(&CommandAnswered{Answer{Asker: cmd.Asker, Request: cmd.Request, Void: cmd.Attempt}, cmd.Settled})
	return nil
}

// DropAnswers removes the answers of an asker whose requests so far are all settled. Only the engine issues it, for a process that has been silent
// for longer than it waits for an answer.
type DropAnswers struct{ Asker domain.UUID }

// Decide emits AnswersDropped if there are any.
func (cmd *DropAnswers) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if a := t.askers[cmd.Asker]; a != nil && len(a.answers) > 0 {
		t.Emit(&AnswersDropped{Asker: cmd.Asker, Settled: a.newest() + 1})
	}
	return nil
}
