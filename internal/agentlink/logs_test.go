package agentlink

import (
	"testing"

	"github.com/musterhq/muster/internal/domain/hosting"
)

// An agent gets URLs for the logs of game sessions that its own processes had, after their end.
func TestLogUpload(t *testing.T) {
	w := newWorld(t)
	w.door.config.LogUpload = func(game string) string { return "https://service/" + game }
	a := w.native()
	id := w.game("p1", "g1")
	arn := "arn:aws:gamelift:us-east-1::gamesession/" + string(id)
	ask := func(a *agent, process, game, want string) {
		t.Helper()
		a.send(`{"Action":"RequestLogUpload","RequestId":"r","ProcessId":"` + process + `","GameSessionId":"` + game + `"}`)
		a.wait(`{"Action":"RequestLogUpload","RequestId":"r","StatusCode":` + want)
	}
	ask(a, "p1", arn, `412`)
	w.must(&hosting.ReportExit{Process: key("p1"), Event: "SERVER_PROCESS_CRASHED", Exit: exitReport("SERVER_PROCESS_CRASHED")})
	ask(a, "p1", arn, `200,"Url":"https://service/`+string(id)+`"}`)
	ask(a, "p1", "", `200,"Url":"https://service/`+string(id)+`"}`) // an agent that was not told of it
	w.server("p2")
	ask(a, "p2", arn, `404`)
	ask(a, "p2", "", `404,"ErrorMessage":"this process had no game session"`)
	ask(a, "p3", arn+"x", `404`)

	w.register("other")
	q := w.query("other")
	q.Set("AgentKind", "native")
	q.Set("AgentProto", "1")
	other := w.connect(q)
	ask(other, "p1", arn, `404,"ErrorMessage":"this process had no such game session"`)
	official := w.connect(w.query(testCompute))
	ask(official, "p1", arn, `400`)
	w.door.config.LogUpload = nil
	ask(a, "p1", arn, `404,"ErrorMessage":"this installation keeps no logs of game sessions"`)
}
