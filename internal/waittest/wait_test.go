package waittest

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		Until(t, "a second is over", func() bool { return time.Since(began) >= time.Second })
		if took := time.Since(began); took > time.Second+longPause {
			t.Errorf("it waited %s for what took a second", took)
		}
	})
}

// failing is a test that may fail.
type failing struct{ testing.TB }

func (failing) Helper() {}

func (f failing) Fatalf(string, ...any) { panic(f) }

func TestUntilItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		defer func() {
			if took := time.Since(began); recover() == nil || took < patience || took > patience+longPause {
				t.Errorf("it ended after %s, want %s and a failure", took, patience)
			}
		}()
		Until(failing{}, "never", func() bool { return false })
	})
}
