package cell

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Journals of installations without client keys stay as they are, byte for byte.
func TestMakerOfOthersIsNotWritten(t *testing.T) {
	e := hosting.PlayerReserved{Player: "ann", GameSession: "fleet-1/home/g"}
	without := wire.Append(nil, &e)
	e.Maker = 7
	with := wire.Append(nil, &e)
	if len(with) != len(without)+9 || !strings.HasPrefix(string(with), string(without)) {
		t.Errorf("%x with a maker, %x without", with, without)
	}
	var back hosting.PlayerReserved
	if err := new(wire.Reader).Read(with, &back); err != nil || back.Maker != 7 {
		t.Errorf("read %+v, %v", back, err)
	}
	if !domain.Maker(0).MayTouch(7) || domain.Maker(7).MayTouch(0) || domain.Maker(7).MayTouch(8) || !domain.Maker(7).MayTouch(7) {
		t.Error("a client key touches what is not its own, or a backend does not")
	}
}
