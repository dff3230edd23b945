package playerapi

import (
	"slices"
	"testing"
)

// The calls that access keys of the role readonly may make exist.
func TestReadCallsExist(t *testing.T) {
	x := newLobby(t, nil)
	for _, call := range readCalls {
		if _, ok := x.door.partner.Classes()[call]; !ok {
			if _, ok := x.door.operator.Classes()[call]; !ok {
				t.Errorf("there is no call %s", call)
			}
		}
	}
	if !slices.IsSorted(readCalls) {
		t.Error("the calls that change nothing are out of order")
	}
}
