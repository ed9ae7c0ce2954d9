package main

// journal is what GET /v1/log says: every call, what was bought by which token, and what owners did by themselves.
type journal struct {
	Calls     []entry        `json:"calls"` // the last 10,000
	Acts      []act          `json:"acts"`
	Purchases int            `json:"purchases"`
	ByToken   map[string]int `json:"by_token"`
	ByGroup   map[string]int `json:"by_group"`
}

type entry struct {
	At       int64               `json:"at"`
	Method   string              `json:"method"`
	Path     string              `json:"path"`
	Group    string              `json:"group,omitempty"` // where the path does not say it
	Token    string              `json:"token,omitempty"`
	Status   int                 `json:"status"` // 0: no answer was given
	Effect   string              `json:"effect,omitempty"`
	Asked    *int                `json:"asked,omitempty"` // desired or size
	Machines []string            `json:"machines,omitempty"`
	Occupied map[string][]string `json:"occupied,omitempty"` // what lived on those machines at that moment
}

// act is something that an owner began in a group; the size is what it found there, or set.
type act struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	From  int64  `json:"from"`
	Until int64  `json:"until,omitempty"` // absent: it goes on
	Size  int    `json:"size"`
}

// began notes an act; most end at once.
func (j *journal) began(g *group, kind string, now int64) {
	a := act{Group: g.Name, Kind: kind, From: now, Until: now}
	if g.AKS != nil {
		a.Until, a.Size = 0, g.AKS.Count
	} else if a.Size = g.Auto.Desired; g.Auto.Owner != nil {
		a.Until = 0
	}
	j.Acts = append(j.Acts, a)
}

// ended closes what went on in a group.
func (j *journal) ended(group string, now int64) {
	for i := range j.Acts {
		if a := &j.Acts[i]; a.Group == group && a.Until == 0 {
			a.Until = now
		}
	}
}

func (j *journal) bought(token, group string) {
	if j.ByToken == nil {
		j.ByToken, j.ByGroup = map[string]int{}, map[string]int{}
	}
	j.Purchases++
	j.ByToken[token]++
	j.ByGroup[group]++
}

func (j *journal) write(e entry) {
	j.Calls = append(j.Calls, e)
	if len(j.Calls) > 12000 {
		j.Calls = last(j.Calls, 10000)
	}
}

// answers remembers what was answered to which token, so that asking twice changes nothing.
type answers struct {
	Given map[string]answer `json:"given"`
	Order []string          `json:"order"`
}

type answer struct {
	Call   string `json:"call"` // path and body without the token
	Status int    `json:"status"`
	Body   string `json:"body"`
}

func (a *answers) keep(token string, given answer) {
	if a.Given == nil {
		a.Given = map[string]answer{}
	}
	a.Given[token] = given
	a.Order = append(a.Order, token)
	if len(a.Order) > 1000 {
		delete(a.Given, a.Order[0])
		a.Order = a.Order[1:]
	}
}
