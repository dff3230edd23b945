package cell

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// The newest accepted losses are remembered, also by a snapshot, and their texts are cut.
func TestLossesAreBounded(t *testing.T) {
	c := New(DefaultConfig())
	do := func(cmd kernel.Command) {
		t.Helper()
		if _, err := c.Execute(cmd, &kernel.Env{Now: 1, Number: 1}); err != nil {
			t.Fatal(err)
		}
	}
	do(&access.TakeOverAccessKeys{Secret: "old"})
	for n := range access.LossesMax + 3 {
		do(&access.AcceptLoss{Part: "archive", What: fmt.Sprint(n, strings.Repeat("x", 2*access.LossTextMax))})
	}
	do(&access.CreateAccessKey{Key: access.Key{ID: "k", Role: access.Admin}})
	frozen := c.Freeze()
	do(&access.AcceptLoss{Part: "cell.secret", Secret: "new"})
	v := c.View()
	losses := v.Losses()
	if len(losses) != access.LossesMax || losses[access.LossesMax-1].Part != "cell.secret" || !strings.HasPrefix(losses[0].What, "4x") || len(losses[0].What) != access.LossTextMax {
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
	if got := was.Losses(); !slices.Equal(got[1:], losses[:access.LossesMax-1]) || !was.AccessKeys()[0].Works() {
		t.Errorf("the snapshot from before has %d losses", len(got))
	}
	if was, _ := was.AccessKeysTakenOver(); was.Secret != "old" {
		t.Errorf("the snapshot from before has the check %q", was.Secret)
	}
}
