package backup

import "os"

// hold locks nothing: Windows does not remove a file that another process has open.
func hold(*os.File) bool { return true }
