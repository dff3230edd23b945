package cell

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain/access"
)

// The newest accepted losses are remembered, also by a snapshot, and their texts are cut.
func TestLossesAreBounded(t *testing.T) {
	c := New(DefaultConfig())
	do := func(cmd Command) {
		t.Helper()
		if _, err := c.Execute(cmd, &Env{Now: 1, Number: 1}); err != nil {
			t.Fatal(err)
		}
	}
	do(&TakeOverAccessKeys{Secret: "old"})
	for n := range lossesMax + 3 {
		do(&AcceptLoss{Part: "archive", What: fmt.Sprint(n, strings.Repeat("x", 2*lossTextMax))})
	}
	do(&CreateAccessKey{Key: access.Key{ID: "k", Role: access.Admin}})
	frozen := c.Freeze()
	do(&AcceptLoss{Part: "cell.secret", Secret: "new"})
	v := c.View()
	losses := v.Losses()
	if len(losses) != lossesMax || losses[lossesMax-1].Part != "cell.secret" || !strings.HasPrefix(losses[0].What, "4x") || len(losses[0].What) != lossTextMax {
		t.Errorf("remembered %d losses, the first %.20q with %d bytes", len(losses), losses[0].What, len(losses[0].What))
	}
	if was, _ := v.AccessKeysTakenOver(); was.Secret != "new" || v.AccessKeys()[0].Works() {
		t.Errorf("after another secret: check %q, key works: %t", was.Secret, v.AccessKeys()[0].Works())
	}
	var stored bytes.Buffer
	if err := frozen.Write(&stored); err != nil {
		t.Fatal(err)
	}
	loaded := New(DefaultConfig())
	if err := loaded.Load(&stored); err != nil {
		t.Fatal(err)
	}
	was := loaded.View()
	if got := was.Losses(); !slices.Equal(got[1:], losses[:lossesMax-1]) || !was.AccessKeys()[0].Works() {
		t.Errorf("the snapshot from before has %d losses", len(got))
	}
	if was, _ := was.AccessKeysTakenOver(); was.Secret != "old" {
		t.Errorf("the snapshot from before has the check %q", was.Secret)
	}
}
