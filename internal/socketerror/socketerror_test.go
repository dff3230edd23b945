package socketerror

import (
	"net"
	"testing"
)

func TestErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	if _, err := net.Listen("tcp", address); !InUse(err) {
		t.Errorf("a port that is in use: %v", err)
	}
	taken.Close()
	if _, err := net.Dial("tcp", address); !Refused(err) {
		t.Errorf("a port at which nothing listens: %v", err)
	}
	if _, err := net.Listen("tcp", "192.0.2.1:0"); !NotLocal(err) { // of a network for documentation
		t.Errorf("an address of another machine: %v", err)
	}
	if InUse(nil) || Refused(net.ErrClosed) {
		t.Error("another error is recognized")
	}
}
