package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// seatOp is one operation on the seats of a game session, from a client's view.
type seatOp struct {
	game string
	kind string // reserve, free or count
}

// seatAnswer is the client's answer.
type seatAnswer struct {
	ok    bool  // reserve: got a seat; false: the session is full
	count int32 // count: how many are held
}

// seats returns the model of a correct service: a separate counter for each session.
func seats(playersMax int32) porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			games := map[string]int{}
			var parts [][]porcupine.Operation
			for _, op := range history {
				game := op.Input.(seatOp).game
				if _, ok := games[game]; !ok {
					games[game] = len(parts)
					parts = append(parts, nil)
				}
				parts[games[game]] = append(parts[games[game]], op)
			}
			return parts
		},
		Init: func() any { return int32(0) },
		Step: func(state, input, output any) (bool, any) {
			held, op, answer := state.(int32), input.(seatOp), output.(seatAnswer)
			switch op.kind {
			case "reserve":
				if answer.ok {
					return held < playersMax, held + 1
				}
				return held == playersMax, held
			case "free":
				return held > 0, held - 1
			default:
				return answer.count == held, held
			}
		},
		DescribeOperation: func(input, output any) string {
			return fmt.Sprintf("%s: %+v", input.(seatOp).kind, output.(seatAnswer))
		},
	}
}

// No seat is sold twice and no answer contradicts another: concurrent reservations, releases and counts against the
// running binary have an order that a simple counter could have had.
func TestReservationsAreLinearizable(t *testing.T) {
	t.Parallel()
	const (
		games      = 3
		playersMax = 3
		clients    = 12
	)
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	p := startService(t, "--reservation", "10m").prepare() // the model has no reservations that expire
	servers := make([]*bareServer, games)
	ids := make([]string, games)
	for i := range servers {
		servers[i] = p.dial(fmt.Sprintf("process-%d", i), "")
		ids[i] = servers[i].host(t, playersMax)
	}

	var mu sync.Mutex
	var history []porcupine.Operation
	start := time.Now()
	record := func(client int, op seatOp, do func() (seatAnswer, error)) (seatAnswer, bool) {
		call := time.Since(start)
		answer, err := do()
		end := time.Since(start)
		if err != nil {
			t.Errorf("%s: %v", op.kind, err)
			return answer, false
		}
		mu.Lock()
		defer mu.Unlock()
		history = append(history, porcupine.Operation{ClientId: client, Input: op, Call: int64(call), Output: answer, Return: int64(end)})
		return answer, true
	}
	var load sync.WaitGroup
	for c := range clients {
		load.Go(func() {
			api := p.api()
			for i := range rounds {
				g := (c + i) % games
				var psess string
				got, fine := record(c, seatOp{ids[g], "reserve"}, func() (seatAnswer, error) {
					player := fmt.Sprintf("p-%d-%d", c, i)
					out, err := api.CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{GameSessionId: &ids[g], PlayerId: &player})
					if isError[*types.GameSessionFullException](err) {
						return seatAnswer{}, nil
					}
					if err != nil {
						return seatAnswer{}, err
					}
					psess = *out.PlayerSession.PlayerSessionId
					return seatAnswer{ok: true}, nil
				})
				if !fine {
					return
				}
				if i%5 == 0 {
					record(c, seatOp{ids[g], "count"}, func() (seatAnswer, error) {
						out, err := api.DescribeGameSessions(t.Context(), &gamelift.DescribeGameSessionsInput{GameSessionId: &ids[g]})
						if err != nil {
							return seatAnswer{}, err
						}
						return seatAnswer{count: *out.GameSessions[0].CurrentPlayerSessionCount}, nil
					})
				}
				if got.ok {
					if i%2 == 0 {
						if err := servers[g].AcceptPlayer(t.Context(), ids[g], psess); err != nil {
							t.Errorf("accept: %v", err)
						}
					}
					record(c, seatOp{ids[g], "free"}, func() (seatAnswer, error) {
						return seatAnswer{}, servers[g].RemovePlayer(t.Context(), ids[g], psess)
					})
				}
			}
		})
	}
	load.Wait()

	result, info := porcupine.CheckOperationsVerbose(seats(playersMax), history, patience)
	if result != porcupine.Ok {
		file := t.ArtifactDir() + "/history.html"
		if err := porcupine.VisualizePath(seats(playersMax), info, file); err != nil {
			t.Error(err)
		}
		t.Errorf("%d operations: %s; run with -artifacts to keep the picture %s", len(history), result, file)
	}
}
