package playerapi

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/frames/framestest"
	"github.com/musterhq/muster/internal/listen"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerrates"
)

// The doors of a fuzz test, with a valid target and valid headers. %T stands for a valid token, %S for a subscription.
var streamDoors = []struct{ target, headers string }{
	{objects.StreamPath + "?after_seq=0", "Sec-WebSocket-Protocol: playerflow.v1\r\nAuthorization: Bearer %T\r\n"},
	{objects.EventsPath + "?subscription_id=%S&after=0", "Sec-WebSocket-Protocol: playerflow.events.v1\r\n"},
}

// Any bytes that a stranger sends to the doors of players and partners, from the first byte of a request on, are answered or end only that
// connection.
func FuzzDoors(f *testing.F) {
	unlimited, err := playerrates.Parse("attach=off partner=off")
	if err != nil {
		f.Fatal(err)
	}
	x := newLobby(f, func(c *Config) { c.Dev, c.Rates = true, unlimited })
	token := x.login("ann")
	_, made := x.send(x.door.Partner(), "", objects.PartnerPrefix+"Events.Subscribe", "{}")
	subscription, _ := made["subscription_id"].(string)
	port, err := listen.Open(listen.Config{Addr: "127.0.0.1:0", Handler: x.door, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- port.Serve() }()
	f.Cleanup(func() {
		_ = port.Stop(f.Context())
		<-served
	})
	for i, door := range streamDoors {
		for _, frame := range framestest.Frames(`{"type":"ack","seq":1}`, `{"type":"ack","no":18446744073709551615}`, `{"type":"ping"}`) {
			f.Add(door.target, door.headers, frame)
		}
		f.Add(streamDoors[i].target+"&after_seq=-1&after=%ff", door.headers+"Origin: http://elsewhere\r\n", []byte{0x81})
	}
	f.Add(objects.ServerStreamPath+"?game_session_id=:gamesession/", "Sec-WebSocket-Protocol: playerflow.partner.v1\r\nAuthorization: Bearer pfs_gi-1_x\r\n", []byte{})
	address, engineErr := port.Addr().String(), x.door.state.Err
	f.Fuzz(func(t *testing.T, target, headers string, sent []byte) {
		fill := strings.NewReplacer("%T", token, "%S", subscription).Replace
		status, err := framestest.Exchange(address, framestest.Head(fill(target), fill(headers)), sent)
		if err != nil {
			t.Errorf("%q %q %x: %v", target, headers, sent, err)
		}
		for _, door := range streamDoors {
			if target == door.target && headers == door.headers && status != http.StatusSwitchingProtocols {
				t.Errorf("a good request was answered with %d", status)
			}
		}
		if engineErr() != nil {
			t.Errorf("the engine has stopped: %v", engineErr())
		}
	})
}
