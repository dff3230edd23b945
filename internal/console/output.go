package console

import (
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/policy"
)

// gamePrefix starts the id of a game session, as in an ARN, where the output of its server process is requested.
const gamePrefix = ":gamesession/"

// outputLines is how many of the last lines a page shows at first.
const outputLines = "500"

// outputView is the page of what a server process prints.
type outputView struct {
	ID   string
	Back link
	Text string // URL of the output as text, as far as it has been kept
	Live string // URL of a stream of the last lines and of everything printed after them
}

// output is the page of the output of a server process, or of the server process of a game session.
func (d *Door) output(r *http.Request) (*content, error) {
	id := r.PathValue("id")
	text := Prefix + "/output.txt/" + escaped(id)
	x := &outputView{ID: id, Text: text + "?tail=100000", Live: text + "?tail=" + outputLines + "&follow=true", Back: link{"Server process", Prefix + "/process/" + escaped(id)}}
	c := &content{Title: "Output of " + id, Section: "fleets", page: "output", Output: true, Data: x, Command: "muster logs --follow " + shellWord(id)}
	if game, ok := strings.CutPrefix(id, gamePrefix); ok {
		x.Back, c.Section, c.Title = link{"Game session", Prefix + "/game-session/" + escaped(game)}, "game-sessions", "Output of the server process of "+game
		c.Command = "muster logs --follow " + shellWord("arn:aws:gamelift:REGION::gamesession/"+game)
	}
	return c, nil
}

// serveOutput answers with the output as text.
func (d *Door) serveOutput(w http.ResponseWriter, r *http.Request, by identity.AccessKey) {
	who := by.Principal(d.config.Proxies.Of(r))
	if err := who.MayCall(policy.ReadOutput); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	d.config.Output(w, r, who, r.PathValue("id"))
}

// outputLink links to the output of a server process.
func outputLink(id string) link { return link{"Output", Prefix + "/output/" + escaped(id)} }
