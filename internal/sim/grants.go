package sim

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/grants"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// ofSignIns are the commands of sign-in clients and their people.
var ofSignIns = []maker{{2, askDevice}, {1, answerDevice}, {1, collectDevice}, {1, useCode}}

func askDevice(w *Wishes, _ *cell.View) kernel.Command {
	n := w.chance.IntN(30)
	return &grants.AskDevice{UserCode: fmt.Sprint("code-", n), Code: fmt.Sprint("hash-", n), Client: "cli", Name: "a client", Address: fmt.Sprint("10.3.0.", n%3), Renews: n%2 == 0}
}

func answerDevice(w *Wishes, _ *cell.View) kernel.Command {
	return &grants.AnswerDevice{UserCode: fmt.Sprint("code-", w.chance.IntN(30)), SignIn: fmt.Sprint("signin-", w.chance.IntN(3)), Approve: !w.oneIn(3)}
}

func collectDevice(w *Wishes, _ *cell.View) kernel.Command {
	return &grants.CollectDevice{Code: fmt.Sprint("hash-", w.chance.IntN(30)), Client: "cli"}
}

func useCode(w *Wishes, _ *cell.View) kernel.Command {
	return &grants.UseCode{Kind: grants.Once(w.chance.IntN(3)), ID: fmt.Sprint("code-", w.chance.IntN(20)), SignIn: fmt.Sprint("signin-", w.chance.IntN(3)), Expires: w.now.Add(time.Duration(w.chance.IntN(120)) * time.Second)}
}
