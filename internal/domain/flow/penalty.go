package flow

import (
	"github.com/musterhq/muster/internal/domain"
)

// PenaltyKind is the offence that a penalty is for.
type PenaltyKind uint8

// The kinds.
const (
	Dodge PenaltyKind = iota + 1
	Leave
	AFK
	Requeue // entering and leaving matchmaking repeatedly; it has a scale of its own
	ByOperator
)

func (k PenaltyKind) String() string {
	return [...]string{"", "DODGE", "LEAVE", "AFK", "REQUEUE", "OPERATOR"}[k]
}

// Penalty is the position of a player on one of the scales.
type Penalty struct {
	Kind     PenaltyKind
	Level    int32       // offences that have not decayed; see Step
	Since    domain.Time // of the latest one
	Until    domain.Time // no search until then, if penalties are enforced
	Instance InstanceID  // game of the latest offence
	Reason   Reason
}

// Step returns the position on the scale in the form that clients and backends see: 0 for the first offence (docs/spec/fair-play.md#penalties). A
// lock set by an operator is on no scale; its step is the level that the operator chose.
func (p *Penalty) Step() int32 {
	if p.Kind == ByOperator {
		return p.Level
	}
	return max(0, p.Level-1)
}

// LevelAt returns the level of a penalty at a step.
func LevelAt(kind PenaltyKind, step int32) int32 {
	if kind == ByOperator {
		return step
	}
	return step + 1
}
