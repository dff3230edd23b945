package hosting

import "github.com/musterhq/muster/internal/domain/fleet"

// ServerProcess returns the game server that sent the command and is the actor of its consequences.

func (cmd *ConnectProcess) ServerProcess() *fleet.Key      { return &cmd.Process }
func (cmd *LoseLink) ServerProcess() *fleet.Key            { return &cmd.Process }
func (cmd *ActivateProcess) ServerProcess() *fleet.Key     { return &cmd.Process }
func (cmd *ReportHealth) ServerProcess() *fleet.Key        { return &cmd.Process }
func (cmd *RefreshProcess) ServerProcess() *fleet.Key      { return &cmd.Process }
func (cmd *SettleProcess) ServerProcess() *fleet.Key       { return &cmd.Process }
func (cmd *PromptGameSession) ServerProcess() *fleet.Key   { return &cmd.Process }
func (cmd *ActivateGameSession) ServerProcess() *fleet.Key { return &cmd.Process }
func (cmd *SetPlayerPolicy) ServerProcess() *fleet.Key     { return &cmd.Process }
func (cmd *AcceptPlayer) ServerProcess() *fleet.Key        { return &cmd.Process }
func (cmd *RemovePlayer) ServerProcess() *fleet.Key        { return &cmd.Process }
func (cmd *EndProcess) ServerProcess() *fleet.Key          { return &cmd.Process }
func (cmd *ReportExit) ServerProcess() *fleet.Key          { return &cmd.Process }
