package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// A container or a virtual machine that is paused for longer than a seat is reserved, and longer than a game server may be silent, costs no player a seat and no game session its server.
func TestPauseOfTheService(t *testing.T) {
	t.Parallel()
	const reservation = 12 * time.Second
	s := startService(t, "--reservation", reservation.String(), "--link-grace", reservation.String())
	p := s.prepare()
	p.startArena()
	game := p.createGameSession(2)
	s.untilGameSession(*game.GameSessionId, types.GameSessionStatusActive)
	seat := s.mustReserve(*game.GameSessionId, "PlayerOne")
	must(t, s.cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(reservation + 4*time.Second)
	must(t, s.cmd.Process.Signal(syscall.SIGCONT))
	if x := s.playerSession(seat); x.Status != types.PlayerSessionStatusReserved {
		t.Errorf("the seat is %s", x.Status)
	}
	if x := s.gameSession(*game.GameSessionId); x.Status != types.GameSessionStatusActive {
		t.Errorf("the game session is %s", x.Status)
	}
	s.untilLogged("the service was paused")
	s.untilPlayer(seat, types.PlayerSessionStatusTimedout)
}
