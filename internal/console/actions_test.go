package console

import (
	"testing"

	"github.com/musterhq/muster/internal/policy"
)

// Every form that is no operation of the service API has an action of its own, so that policies can allow or deny it.
func TestFormsAreActions(t *testing.T) {
	for name, a := range actions {
		if _, ok := policy.Of(a.service); ok == (a.operation != "") {
			t.Errorf("%s: operation %q, service %q; want one of them, and the action", name, a.operation, a.service)
		}
	}
	if _, ok := policy.Of(LookAction); !ok {
		t.Errorf("%s is no action", LookAction)
	}
}
