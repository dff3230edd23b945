package serverlink

import (
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/frames/framestest"
)

// All bytes that a stranger sends to the door of game servers, from the first one on, are answered or end the stranger's own connection.
// A %T in the target stands for a good token.
func FuzzDoor(f *testing.F) {
	w := newWorld(f)
	token := w.token()
	honest := w.connect("honest")
	const good = "/?pID=p&ComputeId=" + testCompute + "&FleetId=" + testFleet + "&sdkVersion=5.4.0&sdkLanguage=Cpp&Authorization=%T"
	for _, frame := range framestest.Frames(`{"Action":"HeartbeatServerProcess","RequestId":"1","HealthStatus":true}`,
		`{"Action":"ActivateServerProcess","RequestId":"2","Port":7777}`, `{"Action":"TerminateServerProcess","RequestId":"3"}`) {
		f.Add(good, "", frame)
	}
	f.Add("/agent?pID=%ff", "Sec-WebSocket-Extensions: permessage-deflate\r\n", []byte{0x81})
	f.Add(good, "Content-Length: 1\r\n", []byte{})
	address, closed, err := w.addr, honest.Closed(), w.engine.Err
	f.Fuzz(func(t *testing.T, target, headers string, sent []byte) {
		status, exchangeErr := framestest.Exchange(address, framestest.Head(strings.ReplaceAll(target, "%T", token), headers), sent)
		if exchangeErr != nil {
			t.Errorf("%q %q %x: %v", target, headers, sent, exchangeErr)
		}
		if target == good && headers == "" && status != http.StatusSwitchingProtocols {
			t.Errorf("a good request was answered with %d", status)
		}
		select {
		case <-closed:
			t.Error("an honest game server has lost its connection")
		default:
		}
		if err() != nil {
			t.Errorf("the engine has stopped: %v", err())
		}
	})
}
