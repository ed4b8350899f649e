// 控制台的全部中文文字；形状与 en.ts 相同，缺一条就不能编译。
import type { Strings } from "./en";

export const zh: Strings = {
  product: "browserspace",
  nav: { label: "页面", spaces: "空间", log: "日志", instances: "实例", bindings: "绑定", tokens: "令牌", api: "API" },
  top: {
    workspace: "工作区", other: "其他工作区…", otherName: "工作区名称", enter: "进入", signOut: "退出登录", theme: "主题", language: "语言",
    themes: { system: "跟随系统", light: "浅色", dark: "深色" }, skip: "跳到正文", menu: "设置",
  },
  signIn: {
    title: "登录", token: "令牌", hint: "本服务器的令牌以 bst_ 开头。首个运维令牌在数据目录的 operator.token 文件中。",
    keep: "保留到关闭此标签页", keepHint: "否则下次刷新后即忘记。令牌永远不会出现在网址中。",
    submit: "登录", trying: "正在询问服务器…", show: "显示", hide: "隐藏", ended: "你已被登出：令牌未知、过期或已吊销。",
    empty: "请输入令牌。", noWorkspace: "控制台不知道此令牌可进入哪个工作区。请输入它所属的工作区。",
  },
  common: {
    loading: "加载中…", retry: "重试", cancel: "返回", copy: "复制", copied: "已复制", more: (n) => `再显示 ${n} 个字符`, less: "收起",
    all: "全部", id: "标识", created: "创建时间", close: "关闭此消息", unknownPlace: "没有这个页面。",
    toSpaces: "前往空间列表", ago: (age) => `${age}前`, optional: "可选", required: "必填", loadMore: "加载更多",
  },
  link: { connecting: "连接中…", live: "实时", waiting: "连接已断开，正在重试…", ended: "已完整：不会再有新事件", failed: "未跟随", polling: "每 3 秒查询一次" },
  problem: {
    title: "服务器拒绝了请求", noAnswer: "服务器没有回答", denied: "你无权查看", retryable: "同一请求稍后可能成功",
    notRetryable: "同一请求不会成功", request: "请求", details: "详情",
    turns: {
      you: "你：按消息所说修改后再试。", operator: "运维人员：需要先更改你的令牌或服务器。", wait: "暂时无人：可能会自行恢复，稍等再试。",
      repeat: "你：没有人知道它是否已被记录。用同一标识再次发送；不会重复执行。",
    },
    mayHaveRun: "浏览器可能已执行此步骤", notRun: "浏览器未执行此步骤", denialHint: "请向运维人员索取具有所需角色的令牌。",
    inUse: "另一个空间正占用此浏览器。浏览器从不共享：请换一个实例，或等那个空间关闭。",
  },
  spaces: {
    title: "空间", create: "打开空间", empty: "还没有空间。", emptyHint: "空间让其所有者独占一个浏览器。请在空闲实例上打开一个。",
    noneFound: "没有符合筛选条件的空间。", filter: "所有者、标识、实例或错误", status: "状态", owner: "所有者", instance: "实例", task: "当前任务", age: "存在时间", last: "最近事件",
    count: (shown, isAll) => `${shown}${isAll ? "" : "+"} 个空间`, cancelling: "取消中", waitingFor: (d) => `已排队 ${d}`, runningFor: (d) => `已运行 ${d}`, list: "空间列表", error: "最近错误",
  },
  status: { idle: "空闲", running: "运行中", error: "错误", closed: "已关闭", absent: "不存在", queued: "排队中", completed: "已完成", failed: "失败", cancelled: "已取消", starting: "启动中", ready: "就绪", unavailable: "不可用", retired: "已退役" },
  roles: { operator: "运维人员", runtime_agent: "代理", auditor: "审计员", system: "服务器" },
  create: {
    title: "打开空间", instance: "浏览器实例", binding: "依据的权利", byWorkspace: "实例本身指定了此工作区", owner: "所有者", ownerType: "所有者类型", ownerHint: "与其令牌中的一致。代理只能填自己。",
    capabilities: "授予的能力", capabilitiesHint: "任务只能调用这些能力。", idle: "闲置多少秒后关闭", submit: "打开空间", busy: "正在打开…",
    reserved: "使用中", noInstances: "此工作区没有可预留的实例。", noInstancesHint: "由运维人员注册实例，或将实例绑定到此工作区。", selectAll: "全选", selectNone: "全不选", noneGranted: "请至少授予一项能力。", ownerMissing: "请填写所有者。",
  },
  space: {
    title: "空间", replay: "回放", close: "关闭空间", cancelTask: "取消任务", timeline: "时间线", tasks: "任务", noTask: "没有排队或运行中的任务。", current: "当前任务",
    closeAsk: "关闭此空间？", closeText: "会先取消运行中的任务。浏览器将结束，其中的页面和登录状态都会丢失，实例随之空闲。此操作无法撤销。", closeYes: "关闭空间",
    cancelAsk: "取消此任务？", cancelText: "浏览器确认后任务才结束；已在页面上做的事不会撤回。", cancelYes: "取消任务", keep: "保持不变",
    cancelRequested: "已请求取消；正在等待浏览器确认。", closing: "正在关闭：浏览器正在结束。", closed: (reason) => `此空间已关闭（${reason}）。历史仍然保留。`, inError: "浏览器正在重启；空间会自行恢复空闲。",
    deadline: "截止时间", remaining: (d) => `剩余 ${d}`, overdue: (d) => `已超过截止时间 ${d}：正在停止`, queued: "排队", started: "开始", ended: "结束", took: "用时", args: "参数（仅名称）", noArgs: "无", result: "结果", details: "结果详情", error: "错误", pictures: "图片", files: "文件",
    run: "执行任务", capability: "能力", timeout: "超时（秒）", submit: "提交", submitting: "正在提交…", example: "填入示例", again: "用同一标识再次发送",
    submitted: "已接受：", noTasks: "还没有任务。", lastError: "最近错误", idleClose: "闲置关闭时限", events: (n) => `${n} 个事件`, save: "保存",
    waitFor: "有任务正在排队或运行；结束后才能提交下一个。", argsHint: "参数会被加密，之后不再显示；任务结束后无法恢复。", pictureAlt: (id) => `图片 ${id}`,
  },
  liveView: {
    title: "实时画面", start: "观看", stop: "停止观看", again: "重新观看", waiting: "正在等待第一幅画面…", alt: "浏览器当前显示的内容",
    hint: "显示浏览器当前的画面。仅供观看：点击和按键不会传到页面。只有在观看时浏览器才为此绘制。", cut: "画面已停止：连接或空间已结束。",
  },
  fault: { required: "此项必填。", too_short: "太短。", too_long: "太长。", pattern: "格式不符合要求。", no_number: "不是数字。", no_integer: "不是整数。", too_small: "太小。", too_large: "太大。", no_json: "不是 JSON。", too_many: "太多。" },
  form: { standard: (v) => `默认：${v}`, pattern: (p) => `格式：${p}`, range: (a, b) => `${a} 至 ${b}`, leave: "（默认）", json: "JSON" },
  replay: {
    title: "回放", scrub: "序号", first: "最前", previous: "上一个", next: "下一个", last: "最后", nextFailure: "下一个失败", previousFailure: "上一个失败", noFailures: "此历史中没有失败。", failures: (n) => `${n} 次失败`,
    copy: "复制指向此序号的链接", state: (n) => `序号 ${n} 时的状态`, picture: "当时的截图", pictureFrom: (n, age) => `截于序号 ${n}，早 ${age}`, noPicture: "到此为止没有截图。", events: "事件", event: "该事件",
    back: "返回空间", position: (at, of) => `${at} / ${of}`, keys: "方向键逐步移动，Home 和 End 跳到两端。",
  },
  log: {
    title: "日志", filter: "流、任务、追踪、所有者或文字", kind: "种类", workspace: "工作区", failures: "仅失败", from: "此位置之后", go: "前往", empty: "还没有符合筛选条件的事件。", record: "完整记录", none: "选择一个事件以查看完整记录。", events: "事件",
    pause: "暂停", resume: "继续", paused: (n) => `已暂停；${n} 条新事件`, denied: "日志仅供运维人员和审计员查看。", newest: "从最新开始", shown: (n, of) => `已读 ${of} 条，显示 ${n} 条`, chain: "链哈希", chainHint: "此版本的 API 不提供；它在日志的段文件中。", noTrace: "无：不是由请求引起", dropped: (n) => `此处不保留更早的事件；前往某个位置即可查看（保留 ${n} 条）。`,
  },
  event: { sequence: "序号", position: "位置", stream: "流", workspace: "工作区", task: "任务", kind: "种类", recorded: "记录时间", principal: "主体", token: "令牌", trace: "追踪标识", payload: "内容" },
  instances: {
    title: "实例", empty: "你的工作区没有可预留的实例。", health: "健康", reserved: "使用中", free: "空闲", name: "名称", kind: "类型", bundle: "能力包", workspaces: "工作区", policy: "网络策略", policyNone: "无", policyHint: "由实例的网络墙强制执行：未允许的访问会立即失败，并记录为已拦截。", open: "打开空间", retire: "退役", retireAsk: "让此实例退役？", retireText: "它不再接受新空间，占用它的空间会被关闭。此操作无法撤销。", retireYes: "让实例退役", register: "注册实例", submit: "注册", workspacesHint: "名称以逗号分隔。留空：你自己的工作区。", allow: "允许", deny: "拒绝", hosts: "host 或 host:port，以逗号分隔", headless: "无界面", role: "运维人员注册和退役实例。代理和审计员可查看其工作区的实例。", trustedHint: "trusted 增加 evaluate；须由服务器允许。", noOne: "不属于你的工作区",
  },
  bindings: {
    title: "绑定", empty: "没有绑定。", emptyHint: "绑定让此工作区（或其中一位所有者）可以预留未指定它的实例。", grant: "授予绑定", submit: "授予", instance: "实例", owner: "仅此所有者", ownerAny: "任何所有者", capabilities: "仅这些能力", capabilitiesAny: "能力包的全部", capabilitiesHint: "以逗号分隔。留空：全部。", revoke: "撤销", revoked: "已撤销", active: "有效", revokeAsk: "撤销此绑定？", revokeText: "不能再凭它打开新空间。已打开的空间不受影响。", revokeYes: "撤销绑定", role: "运维人员授予和撤销。代理和审计员只能查看。",
  },
  tokens: {
    title: "令牌", empty: "此工作区没有令牌。", issue: "签发令牌", submit: "签发", role: "角色", owner: "所有者", ownerHint: "持有者是谁。", all: "可进入所有工作区", expires: "到期时间", expiresHint: "留空：不会自行到期。", never: "永不", revoke: "吊销", revoked: "已吊销", expired: "已过期", active: "有效", revokeAsk: "吊销此令牌？", revokeText: "它会立即被拒绝，其打开的事件流会结束。若这正是你登录所用的令牌，你会被登出。", revokeYes: "吊销令牌", scope: "范围", everyWorkspace: "所有工作区", thisWorkspace: "此工作区",
    shownOnce: "这就是令牌。只显示这一次，别处不会保存：请立即复制。", done: "我已保存", rolesTitle: "各角色可以做什么",
    roleText: { runtime_agent: "打开和使用属于自己的空间，看不到其他内容。", operator: "操作其工作区的所有空间；注册和退役实例、授予绑定、签发和吊销令牌；阅读日志。", auditor: "阅读其工作区的所有空间、令牌和日志；不能更改任何内容。" }, denied: "令牌仅供运维人员和审计员查看。", role_: "运维人员签发和吊销；审计员只读。",
  },
};
