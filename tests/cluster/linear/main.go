// SPDX-License-Identifier: GPL-2.0-only

// linear reads a history of operations on registers from standard input, one JSON object a line, and judges each key on its
// own with porcupine. It prints a line for each key that is not linearizable or could not be decided.
//
// Exit status: 0 all keys are linearizable, 1 one is not, 2 the history can't be read.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// patience is for one key. The search takes exponential time in the operations whose outcome is unknown.
const patience = 60 * time.Second

// An operation as tests/cluster/history.py writes it. An absent key has the value "".
type operation struct {
	Client    int    `json:"client"`
	Key       string `json:"key"`
	Kind      string `json:"kind"` // put, cas or get
	Value     string `json:"value"`
	Expected  string `json:"expected"`  // of a cas
	Succeeded bool   `json:"succeeded"` // of a cas
	Found     string `json:"found"`     // by a get, or by a cas that didn't succeed
	Call      int64  `json:"call"`
	Return    *int64 `json:"return"` // null: the outcome is unknown, the operation may take effect at any later time or never
}

// register says whether a register with the value `state` may answer so, and its value afterwards.
var register = porcupine.Model{
	Init: func() interface{} { return "" },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		asked := input.(operation)
		switch {
		case asked.Kind == "put":
			return true, asked.Value
		case asked.Kind == "get":
			return state == asked.Found, state
		case asked.Return == nil && state == asked.Expected:
			return true, asked.Value
		case asked.Return == nil:
			return true, state
		case asked.Succeeded:
			return state == asked.Expected, asked.Value
		}
		return state != asked.Expected && state == asked.Found, state
	},
}

func read(source io.Reader) (map[string][]porcupine.Operation, error) {
	histories := map[string][]porcupine.Operation{}
	decoder := json.NewDecoder(source)
	for {
		var one operation
		if err := decoder.Decode(&one); err == io.EOF {
			return histories, nil
		} else if err != nil {
			return nil, err
		}
		if one.Kind != "put" && one.Kind != "cas" && one.Kind != "get" {
			return nil, fmt.Errorf("unknown kind of operation %q", one.Kind)
		}
		end := int64(math.MaxInt64)
		if one.Return != nil {
			end = *one.Return
		}
		histories[one.Key] = append(histories[one.Key],
			porcupine.Operation{ClientId: one.Client, Input: one, Call: one.Call, Output: nil, Return: end})
	}
}

func main() {
	histories, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "linear: the history can't be read:", err)
		os.Exit(2)
	}
	keys := make([]string, 0, len(histories))
	for key := range histories {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	status := 0
	for _, key := range keys {
		switch porcupine.CheckOperationsTimeout(register, histories[key], patience) {
		case porcupine.Illegal:
			fmt.Printf("%s: not linearizable\n", key)
			status = 1
		case porcupine.Unknown:
			fmt.Printf("%s: not decided in %v\n", key, patience)
			status = 1
		}
	}
	os.Exit(status)
}
