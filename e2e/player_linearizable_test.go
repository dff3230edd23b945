package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
)

// partyOp is one call about a party of two, from a client's view: enter by the leader, leave (the search) by either, leave party
// by the other one, or a read of both.
type partyOp struct{ party, kind, player string }

// partyState is the relevant state of such a party. No call causes the match: it may come at any time during a search.
type partyState struct {
	phase    string // of the leader: IN_PARTY, MATCHMAKING, IN_GAME
	alone    bool   // the other one has left
	inGame   bool   // the other one is in the game
	notReady bool   // a player who ended a search is not ready any more
}

func (s partyState) other() string {
	switch {
	case s.inGame:
		return "IN_GAME"
	case s.alone:
		return "IDLE"
	}
	return s.phase
}

// step returns the answer of a correct service, and the next state.
func (s partyState) step(op partyOp) (answer string, next partyState) {
	next = s
	switch op.kind {
	case "enter":
		switch {
		case s.phase == "IN_GAME" || s.inGame && !s.alone:
			return "PLAYER_IN_GAME", s
		case s.phase == "MATCHMAKING":
			return "", s // the same search
		case s.notReady && !s.alone:
			return "PLAYERS_NOT_READY", s
		}
		next.phase = "MATCHMAKING"
		return "", next
	case "leave":
		phase := s.phase
		if op.player == "other" {
			phase = s.other()
		}
		switch phase {
		case "IN_GAME":
			return "ALREADY_MATCHED", s
		case "MATCHMAKING":
			next.phase, next.notReady = "IN_PARTY", true
			return "", next
		}
		return "NOT_IN_MATCHMAKING", s
	case "leave party":
		if s.alone {
			return "NOT_IN_PARTY", s
		}
		next.alone = true
		if s.phase == "MATCHMAKING" {
			next.phase = "IN_PARTY"
		}
		return "", next
	}
	return s.phase + " " + s.other(), s
}

// matched returns the state after a match, if one is possible: it takes two players.
func (s partyState) matched() (partyState, bool) {
	if s.phase != "MATCHMAKING" || s.alone {
		return s, false
	}
	s.phase, s.inGame = "IN_GAME", true
	return s, true
}

var partyModel = porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		at := map[string]int{}
		for _, op := range history {
			party := op.Input.(partyOp).party
			if _, ok := at[party]; !ok {
				at[party] = len(parts)
				parts = append(parts, nil)
			}
			parts[at[party]] = append(parts[at[party]], op)
		}
		return parts
	},
	Init: func() []any { return []any{partyState{phase: "IN_PARTY"}} },
	Step: func(state, input, output any) (next []any) {
		before := []partyState{state.(partyState)}
		if s, ok := before[0].matched(); ok {
			before = append(before, s)
		}
		for _, s := range before {
			if answer, after := s.step(input.(partyOp)); answer == output.(string) {
				next = append(next, after)
			}
		}
		return next
	},
	DescribeOperation: func(input, output any) string {
		op := input.(partyOp)
		return fmt.Sprintf("%s %s: %s", op.kind, op.player, output)
	},
}

// answerOf makes a call, possibly with headers, and returns the code of a refusal; "" means success.
func (s *service) answerOf(realm, call, token string, body object, headers ...string) (code string, answer object, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return "", nil, err
	}
	r, err := http.NewRequest(http.MethodPost, s.url()+"/playerflow/v1/"+realm+"/"+call, bytes.NewReader(text))
	if err != nil {
		return "", nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", nil, err
	}
	defer got.Body.Close()
	said, err := io.ReadAll(got.Body)
	if err == nil {
		err = json.Unmarshal(said, &answer)
	}
	if err == nil {
		err = isAsDocumented(realm, call, got.StatusCode, said)
	}
	return answer.text("code"), answer, err
}

// Concurrent clients enter and leave a search that may be matched while the party falls apart, against the running binary: every
// answer and every consistent read fit one order. Above all, a search that was left successfully is never matched.
func TestPartySearchIsLinearizable(t *testing.T) {
	t.Parallel()
	parties := 40
	if testing.Short() {
		parties = 12
	}
	p := startFlow(t, "--player-logins", "0", "--match-every", "10ms")
	rules := `{"ruleLanguageVersion":"1.0","teams":[{"name":"all","minPlayers":2,"maxPlayers":2}]}`
	_, err := p.api().CreateMatchmakingRuleSet(t.Context(), &gamelift.CreateMatchmakingRuleSetInput{Name: aws.String("duo"), RuleSetBody: &rules})
	must(t, err)
	_, err = p.api().CreateMatchmakingConfiguration(t.Context(), &gamelift.CreateMatchmakingConfigurationInput{
		Name: aws.String("duo"), RuleSetName: aws.String("duo"), AcceptanceRequired: aws.Bool(false), RequestTimeoutSeconds: aws.Int32(600),
		GameSessionQueueArns: []string{"arn:aws:gamelift:us-east-1::gamesessionqueue/cup"},
	})
	must(t, err)

	var mu sync.Mutex
	var history []porcupine.Operation
	answers := map[string]int{}
	start := time.Now()
	record := func(client int, op partyOp, do func() (string, error)) {
		call := time.Since(start)
		answer, err := do()
		end := time.Since(start)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Errorf("%+v: %v", op, err)
			return
		}
		answers[op.kind+": "+answer]++
		history = append(history, porcupine.Operation{ClientId: client, Input: op, Call: int64(call), Output: answer, Return: int64(end)})
	}
	for i := range parties {
		both := p.come(fmt.Sprintf("leader-%d", i), fmt.Sprintf("other-%d", i))
		party := gather(both[0], both[1])
		names := object{"player_ids": []string{both[0].name, both[1].name}}
		call := func(client int, kind, player, name string, body object) {
			token := both[0].token
			if player == "other" {
				token = both[1].token
			}
			record(client, partyOp{party, kind, player}, func() (string, error) {
				code, _, err := p.answerOf("player", name, token, body)
				return code, err
			})
		}
		read := func(client int) {
			record(client, partyOp{party: party, kind: "read"}, func() (string, error) {
				_, answer, err := p.answerOf("partner", "Flow.GetPlayers", "", names)
				list, _ := answer["players"].([]any)
				if err != nil || len(list) != 2 {
					return "", fmt.Errorf("%w: %v", err, answer)
				}
				first, _ := list[0].(map[string]any)
				second, _ := list[1].(map[string]any)
				return object(first).text("phase") + " " + object(second).text("phase"), nil
			})
		}
		var load sync.WaitGroup
		late := make(chan struct{}) // the first searches are left at once, later ones when the matcher may have come
		load.Go(func() {
			call(4*i, "enter", "leader", "Matchmaking.EnterMatchmaking", object{"queue": "duo"})
			read(4 * i)
			call(4*i, "enter", "leader", "Matchmaking.EnterMatchmaking", object{"queue": "duo"})
		})
		load.Go(func() {
			for range i % 14 {
				read(4*i + 1)
			}
			close(late)
			for range 3 {
				call(4*i+1, "leave", "other", "Matchmaking.LeaveMatchmaking", object{})
			}
			read(4*i + 1)
		})
		load.Go(func() {
			<-late
			for range 2 {
				call(4*i+2, "leave", "leader", "Matchmaking.LeaveMatchmaking", object{})
				read(4*i + 2)
			}
		})
		if i%2 == 0 {
			load.Go(func() {
				read(4*i + 3)
				if i%4 == 0 {
					<-late
				}
				call(4*i+3, "leave party", "other", "Party.LeaveParty", object{})
				read(4*i + 3)
			})
		}
		load.Wait()
		for _, player := range both {
			player.crash()
		}
	}
	p.noViolations(t)
	t.Logf("%d operations: %v", len(history), answers)

	model := partyModel.ToModel()
	result, info := porcupine.CheckOperationsVerbose(model, history, patience)
	if result != porcupine.Ok {
		file := t.ArtifactDir() + "/history.html"
		if err := porcupine.VisualizePath(model, info, file); err != nil {
			t.Error(err)
		}
		t.Errorf("%d operations: %s; run with -artifacts to keep the picture %s", len(history), result, file)
	}
}
