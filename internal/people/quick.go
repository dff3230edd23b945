//go:build quick

package people

// A quick build, which make run compiles for the demo, has no passkeys: their library takes a thirtieth of the compilation.

type relyingParty struct{}

func (d *Door) openPasskeys() {
	d.why = "This quick build of muster has no passkeys: make build compiles all of muster."
}

func (*Door) routePasskeys() {}
