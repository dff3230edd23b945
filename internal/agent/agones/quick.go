//go:build quick

package agones

import "errors"

// A quick build, which make run compiles for the demo, has no Agones interface: with gRPC it takes a twentieth of the compilation.

// Process is never opened.
type Process struct{}

// Open fails.
func Open(Config) (*Process, error) {
	return nil, errors.New("this quick build of muster has no Agones interface: make build compiles all of muster")
}

// Close does nothing.
func (*Process) Close() {}

// Remove does nothing.
func (*Process) Remove() {}

// Ending does nothing.
func (*Process) Ending() {}

// Busy reports that no game calls the SDK.
func (*Process) Busy() (busy, known bool) { return false, false }
