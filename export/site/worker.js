(() => {
  // node_modules/@litertjs/wasm-utils/dist/index.js
  async function runScript(scriptUrl) {
    if (typeof importScripts === "function") {
      importScripts(scriptUrl.toString());
    } else {
      const script = document.createElement("script");
      script.src = scriptUrl.toString();
      script.crossOrigin = "anonymous";
      return new Promise((resolve, revoke) => {
        script.addEventListener("load", () => {
          resolve();
        }, false);
        script.addEventListener("error", (e) => {
          revoke(e);
        }, false);
        document.body.appendChild(script);
      });
    }
  }
  var createWasmLib = async (constructorFcn, wasmLoaderScript, assetLoaderScript, glCanvas, fileLocator) => {
    if (wasmLoaderScript) {
      await runScript(wasmLoaderScript);
    }
    if (!self.ModuleFactory) {
      throw new Error("ModuleFactory not set.");
    }
    if (assetLoaderScript) {
      await runScript(assetLoaderScript);
      if (!self.ModuleFactory) {
        throw new Error("ModuleFactory not set.");
      }
    }
    if (self.Module && fileLocator) {
      const moduleFileLocator = self.Module;
      moduleFileLocator.locateFile = fileLocator.locateFile;
      if (fileLocator.mainScriptUrlOrBlob) {
        moduleFileLocator.mainScriptUrlOrBlob = fileLocator.mainScriptUrlOrBlob;
      }
    }
    const module = await self.ModuleFactory(self.Module || fileLocator);
    self.ModuleFactory = self.Module = void 0;
    return new constructorFcn(module, glCanvas);
  };

  // node_modules/@litertjs/core/dist/index.js
  var ElementType = {
    NONE: 0,
    FLOAT32: 1,
    INT32: 2,
    UINT8: 3,
    INT64: 4,
    STRING: 5,
    BOOL: 6,
    INT16: 7,
    COMPLEX64: 8,
    INT8: 9,
    FLOAT16: 10,
    FLOAT64: 11,
    COMPLEX128: 12,
    UINT64: 13,
    RESOURCE: 14,
    VARIANT: 15,
    UINT32: 16,
    UINT16: 17,
    INT4: 18,
    BFLOAT16: 19
  };
  var ElementTypeName = {
    [ElementType.NONE]: "NONE",
    [ElementType.FLOAT32]: "FLOAT32",
    [ElementType.INT32]: "INT32",
    [ElementType.UINT8]: "UINT8",
    [ElementType.INT64]: "INT64",
    [ElementType.STRING]: "STRING",
    [ElementType.BOOL]: "BOOL",
    [ElementType.INT16]: "INT16",
    [ElementType.COMPLEX64]: "COMPLEX64",
    [ElementType.INT8]: "INT8",
    [ElementType.FLOAT16]: "FLOAT16",
    [ElementType.FLOAT64]: "FLOAT64",
    [ElementType.COMPLEX128]: "COMPLEX128",
    [ElementType.UINT64]: "UINT64",
    [ElementType.RESOURCE]: "RESOURCE",
    [ElementType.VARIANT]: "VARIANT",
    [ElementType.UINT32]: "UINT32",
    [ElementType.UINT16]: "UINT16",
    [ElementType.INT4]: "INT4",
    [ElementType.BFLOAT16]: "BFLOAT16"
  };
  var TensorBufferType = {
    HOST_MEMORY: 1,
    WEB_GPU_BUFFER: 20,
    WEB_GPU_BUFFER_FP16: 21,
    WEB_GPU_BUFFER_PACKED: 26
  };
  var TensorBufferTypeName = {
    [TensorBufferType.HOST_MEMORY]: "HOST_MEMORY",
    [TensorBufferType.WEB_GPU_BUFFER]: "WEB_GPU_BUFFER",
    [TensorBufferType.WEB_GPU_BUFFER_FP16]: "WEB_GPU_BUFFER_FP16",
    [TensorBufferType.WEB_GPU_BUFFER_PACKED]: "WEB_GPU_BUFFER_PACKED"
  };
  var DATATYPES = Object.freeze([
    {
      dtype: "float32",
      typedArrayConstructor: Float32Array,
      elementType: ElementType.FLOAT32
    },
    {
      dtype: "int32",
      typedArrayConstructor: Int32Array,
      elementType: ElementType.INT32
    },
    {
      dtype: "uint8",
      typedArrayConstructor: Uint8Array,
      elementType: ElementType.UINT8
    }
  ]);
  function getDataType(val) {
    for (const dataTypeMapping of DATATYPES) {
      if (dataTypeMapping.dtype === val || dataTypeMapping.typedArrayConstructor === val || val instanceof dataTypeMapping.typedArrayConstructor || dataTypeMapping.elementType === val) {
        return dataTypeMapping;
      }
    }
    if (typeof val === "string") {
      throw new Error(`DType ${val} is not supported.`);
    } else if (val instanceof Object) {
      throw new Error(`Typed array ${"name" in val ? val.name : val.constructor.name} is not supported.`);
    } else {
      throw new Error(
        `Element type ${ElementTypeName[val] ?? val} is not supported.`
      );
    }
  }
  var LiteRtNotLoadedError = class extends Error {
    constructor() {
      super(
        "LiteRT is not initialized yet. Please call loadLiteRt() and wait for its promise to resolve to load the LiteRT WASM module."
      );
    }
  };
  var globalLiteRt = void 0;
  var globalLiteRtPromise = void 0;
  function getGlobalLiteRt() {
    if (!globalLiteRt) {
      throw new LiteRtNotLoadedError();
    }
    return globalLiteRt;
  }
  function setGlobalLiteRt(liteRt) {
    globalLiteRt = liteRt;
  }
  function getGlobalLiteRtPromise() {
    return globalLiteRtPromise;
  }
  function hasGlobalLiteRtPromise() {
    return Boolean(globalLiteRtPromise);
  }
  function setGlobalLiteRtPromise(promise) {
    globalLiteRtPromise = promise;
  }
  var AcceleratorDefaultTensorBufferType = {
    "webgpu": TensorBufferType.WEB_GPU_BUFFER_PACKED,
    "wasm": TensorBufferType.HOST_MEMORY
  };
  var TensorBufferTypeToAccelerator = {
    [TensorBufferType.HOST_MEMORY]: "wasm",
    [TensorBufferType.WEB_GPU_BUFFER]: "webgpu",
    [TensorBufferType.WEB_GPU_BUFFER_FP16]: "webgpu",
    [TensorBufferType.WEB_GPU_BUFFER_PACKED]: "webgpu"
  };
  var DESIRED_WEBGPU_FEATURES = [
    "shader-f16",
    "subgroups"
  ];
  var Environment = class _Environment {
    constructor(options) {
      this.options = options;
      this.liteRtEnvironment = getGlobalLiteRt().liteRtWasm.LiteRtEnvironment.create(
        options.webGpuDevice
      );
    }
    liteRtEnvironment;
    static async create(options = {}) {
      let webGpuDevice = null;
      if ("webGpuDevice" in options) {
        if (options.webGpuDevice) {
          webGpuDevice = options.webGpuDevice;
        }
      } else {
        try {
          webGpuDevice = await createDefaultWebGpuDevice();
        } catch (e) {
          console.warn("Failed to create default WebGPU device:", e);
        }
      }
      return new _Environment({
        ...options,
        webGpuDevice
      });
    }
    get webGpuDevice() {
      return this.options.webGpuDevice;
    }
    delete() {
      this.liteRtEnvironment.delete();
    }
  };
  async function createDefaultWebGpuDevice() {
    const adapterDescriptor = {
      powerPreference: "high-performance"
    };
    const adapter = await navigator.gpu.requestAdapter(adapterDescriptor);
    if (!adapter) {
      throw new Error("No GPU adapter found.");
    }
    const requiredLimits = {
      maxBufferSize: adapter.limits.maxBufferSize,
      maxStorageBufferBindingSize: adapter.limits.maxStorageBufferBindingSize,
      maxStorageBuffersPerShaderStage: adapter.limits.maxStorageBuffersPerShaderStage,
      maxTextureDimension2D: adapter.limits.maxTextureDimension2D
    };
    const requiredFeatures = [];
    for (const feature of DESIRED_WEBGPU_FEATURES) {
      if (adapter.features.has(feature)) {
        requiredFeatures.push(feature);
      }
    }
    return await adapter.requestDevice({
      requiredFeatures,
      requiredLimits
    });
  }
  function emscriptenVectorToArray(vector) {
    const array = new Array(vector.size());
    for (let i = 0; i < vector.size(); ++i) {
      array[i] = vector.get(i);
    }
    vector.delete();
    return array;
  }
  function fillEmscriptenVector(data, vector) {
    for (const item of data) {
      vector.push_back(item);
    }
  }
  function parseData(remainingArgs) {
    const data = remainingArgs.shift();
    const liteRtWasm = getGlobalLiteRt().liteRtWasm;
    if (data instanceof liteRtWasm.LiteRtTensorBuffer) {
      return { liteRtTensorBuffer: data };
    } else if (ArrayBuffer.isView(data)) {
      return { typedArray: data };
    } else if (data instanceof GPUBuffer) {
      return { gpuBuffer: data };
    } else {
      throw new Error(
        `Unknown type (${data?.constructor.name ?? data}) provided to create a Tensor`
      );
    }
  }
  function parseShape(remainingArgs) {
    if (Array.isArray(remainingArgs[0]) || remainingArgs[0] instanceof Int32Array) {
      return { shape: remainingArgs.shift() };
    } else {
      return {};
    }
  }
  function shiftUntilDefined(remainingArgs) {
    while (remainingArgs.length > 0 && remainingArgs[0] === void 0) {
      remainingArgs.shift();
    }
  }
  function parseDataType(remainingArgs) {
    shiftUntilDefined(remainingArgs);
    if (typeof remainingArgs[0] === "string") {
      const dtype = remainingArgs.shift();
      return { dataType: getDataType(dtype).dtype };
    } else {
      return {};
    }
  }
  function parseEnvironment(remainingArgs) {
    shiftUntilDefined(remainingArgs);
    if (remainingArgs[0] instanceof Environment) {
      return { environment: remainingArgs.shift() };
    } else {
      return {};
    }
  }
  function parseOnDelete(remainingArgs) {
    shiftUntilDefined(remainingArgs);
    if (remainingArgs[0] instanceof Function) {
      return { onDelete: remainingArgs.shift() };
    } else {
      return {};
    }
  }
  function parseArgs(args) {
    return {
      ...parseData(args),
      ...parseShape(args),
      ...parseDataType(args),
      ...parseEnvironment(args),
      ...parseOnDelete(args)
    };
  }
  var Tensor = class _Tensor {
    liteRtTensorBuffer;
    type;
    environment;
    deletedInternal = false;
    onDelete;
    static copyFunctions = /* @__PURE__ */ new Map();
    constructor(a, b, c, d, e) {
      const {
        typedArray,
        gpuBuffer,
        liteRtTensorBuffer,
        shape,
        dataType,
        environment,
        onDelete
      } = parseArgs([a, b, c, d, e]);
      this.onDelete = onDelete;
      this.environment = environment ?? getGlobalLiteRt().getDefaultEnvironment();
      if (liteRtTensorBuffer) {
        if (shape) {
          throw new Error(
            "A LiteRtTensorBuffer cannot be provided with a shape."
          );
        }
        if (dataType) {
          throw new Error(
            "A LiteRtTensorBuffer cannot be provided with a data type."
          );
        }
        this.liteRtTensorBuffer = liteRtTensorBuffer;
      } else if (gpuBuffer) {
        if (!shape) {
          throw new Error("A GPUBuffer must be provided with a shape.");
        }
        if (!dataType) {
          throw new Error("A GPUBuffer must be provided with a data type.");
        }
        const [liteRtTensorBuffer2, webGpuBufferPtr] = webGpuBufferToLiteRtTensorBuffer(
          gpuBuffer,
          shape,
          dataType,
          this.environment
        );
        this.liteRtTensorBuffer = liteRtTensorBuffer2;
        const onDelete2 = this.onDelete;
        this.onDelete = () => {
          const liteRtWasm = getGlobalLiteRt().liteRtWasm;
          liteRtWasm.wgpuBufferRelease(webGpuBufferPtr);
          onDelete2?.();
        };
      } else if (typedArray) {
        this.liteRtTensorBuffer = typedArrayToLiteRtTensorBuffer(
          typedArray,
          shape,
          environment
        );
      } else {
        throw new Error("No data provided to create a Tensor.");
      }
      this.type = liteRtTensorBufferToTensorType(this.liteRtTensorBuffer);
    }
    static fromTypedArray(data, shape, environment) {
      return new _Tensor(data, shape, environment);
    }
    ensureNotDeleted() {
      if (this.deleted) {
        throw new Error("Tensor is deleted and cannot be used.");
      }
    }
    async data() {
      this.ensureNotDeleted();
      if (this.liteRtTensorBuffer.bufferType().value === TensorBufferType.HOST_MEMORY) {
        return this.toTypedArray();
      }
      const copy = await this.copyTo("wasm");
      const data = await copy.data();
      copy.delete();
      return data;
    }
    toTypedArray() {
      this.ensureNotDeleted();
      const liteRtWasm = getGlobalLiteRt().liteRtWasm;
      if (this.liteRtTensorBuffer.isWebGpuMemory()) {
        throw new Error(
          "Cannot convert a Tensor with WebGPU memory to a TypedArray."
        );
      }
      if (this.liteRtTensorBuffer.bufferType().value !== liteRtWasm.LiteRtTensorBufferType.HOST_MEMORY.value) {
        throw new Error(
          "Cannot convert a Tensor with non-host memory to a TypedArray."
        );
      }
      if (this.liteRtTensorBuffer.size() !== this.liteRtTensorBuffer.packedSize() || this.liteRtTensorBuffer.offset() !== 0) {
        throw new Error("Tensors with strides or padding are not yet supported.");
      }
      const rankedTensorType = this.liteRtTensorBuffer.tensorType();
      const elementType = rankedTensorType.elementType();
      const byteWidth = liteRtWasm.liteRtGetByteWidth(elementType);
      rankedTensorType.delete();
      const typedArrayConstructor = getDataType(
        elementType.value
      ).typedArrayConstructor;
      if (typedArrayConstructor.BYTES_PER_ELEMENT !== byteWidth) {
        throw new Error(
          `Byte width ${byteWidth} of the tensor's element type ${ElementTypeName[elementType.value]} does not match the expected byte width ${typedArrayConstructor.BYTES_PER_ELEMENT} of the ${typedArrayConstructor.name}.`
        );
      }
      const dataPtr = this.liteRtTensorBuffer.lock(
        getGlobalLiteRt().liteRtWasm.LiteRtTensorBufferLockMode.READ
      );
      try {
        const uint8Array = liteRtWasm.HEAPU8.slice(
          dataPtr,
          dataPtr + this.liteRtTensorBuffer.packedSize()
        );
        const typedArray = new typedArrayConstructor(
          uint8Array.buffer,
          uint8Array.byteOffset,
          uint8Array.byteLength / byteWidth
        );
        return typedArray;
      } finally {
        this.liteRtTensorBuffer.unlock();
      }
    }
    getBufferType() {
      this.ensureNotDeleted();
      return this.liteRtTensorBuffer.bufferType().value;
    }
    /**
     * Returns the underlying GPUBuffer of the Tensor.
     *
     * Note that the lifetime of the returned GPUBuffer is dependant upon how the
     * Tensor was created. If the Tensor was constructed from a GPUBuffer, then
     * the GPUBuffer will NOT be released when the Tensor is deleted. If the
     * Tensor was copied/moved to GPU from host memory, then the GPU buffer will
     * be released when the Tensor is deleted.
     *
     * The GPU buffer may be larger than the actual data in the tensor.
     *
     * @return The GPUBuffer containing the Tensor's data.
     */
    toGpuBuffer() {
      this.ensureNotDeleted();
      const liteRtWasm = getGlobalLiteRt().liteRtWasm;
      if (!this.liteRtTensorBuffer.isWebGpuMemory()) {
        throw new Error(
          "Cannot convert a Tensor with non-WebGPU memory to a GPUBuffer."
        );
      }
      const bufferTypeValue = this.liteRtTensorBuffer.bufferType().value;
      if (bufferTypeValue !== liteRtWasm.LiteRtTensorBufferType.WEB_GPU_BUFFER.value && bufferTypeValue !== liteRtWasm.LiteRtTensorBufferType.WEB_GPU_BUFFER_FP16.value && bufferTypeValue !== liteRtWasm.LiteRtTensorBufferType.WEB_GPU_BUFFER_PACKED.value) {
        throw new Error(
          "Cannot convert a Tensor with host memory to a GPUBuffer."
        );
      }
      if (this.liteRtTensorBuffer.size() !== this.liteRtTensorBuffer.packedSize() || this.liteRtTensorBuffer.offset() !== 0) {
        throw new Error("Tensors with strides or padding are not yet supported.");
      }
      const gpuBufferId = this.liteRtTensorBuffer.getWebGpuBuffer();
      return liteRtWasm.WebGPU.getJsObject(gpuBufferId);
    }
    getCopyFunctionSet(destination) {
      this.ensureNotDeleted();
      const sourceBufferType = this.getBufferType();
      const copyFunctions = _Tensor.copyFunctions.get(sourceBufferType);
      if (!copyFunctions) {
        throw new Error(
          `TensorBufferType ${TensorBufferTypeName[sourceBufferType] ?? sourceBufferType} does not support copying or moving`
        );
      }
      const destinationBufferType = typeof destination === "string" ? AcceleratorDefaultTensorBufferType[destination] : destination;
      if (destinationBufferType == null) {
        throw new Error(
          `Unknown destination '${destination}' for copying or moving.`
        );
      }
      const copyFunctionSet = copyFunctions.get(destinationBufferType);
      if (!copyFunctionSet) {
        const supportedDestinations = [...copyFunctions].map(
          ([key]) => TensorBufferTypeName[key] ?? key
        );
        throw new Error(
          `TensorBufferType ${TensorBufferTypeName[sourceBufferType]} does not support copying or moving to ${TensorBufferTypeName[destinationBufferType]}. It supports the following TensorBufferTypes: [${supportedDestinations.join(
            ", "
          )}].`
        );
      }
      return [copyFunctionSet, destinationBufferType];
    }
    /**
     * Copies the tensor to the given accelerator.
     *
     * @param destination The accelerator or buffer type to copy to.
     * @return A promise that resolves to the copied tensor.
     */
    async copyTo(destination, options) {
      const [copyFunctionSet, destinationBufferType] = this.getCopyFunctionSet(destination);
      if (!copyFunctionSet.copyTo) {
        throw new Error(
          `Copying to ${TensorBufferTypeName[destinationBufferType]} is not supported by this tensor.`
        );
      }
      return copyFunctionSet.copyTo(this, options);
    }
    /**
     * Moves the tensor to the given accelerator.
     *
     * @param destination The accelerator or buffer type to move to.
     * @return A promise that resolves to the moved tensor.
     */
    async moveTo(destination, options) {
      const [copyFunctionSet, destinationBufferType] = this.getCopyFunctionSet(destination);
      if (!copyFunctionSet.moveTo) {
        throw new Error(
          `Moving to ${TensorBufferTypeName[destinationBufferType]} is not supported by this tensor.`
        );
      }
      return copyFunctionSet.moveTo(this, options);
    }
    get bufferType() {
      return this.liteRtTensorBuffer.bufferType().value;
    }
    get accelerator() {
      const accelerator = TensorBufferTypeToAccelerator[this.bufferType];
      if (accelerator === void 0) {
        throw new Error(
          `TensorBufferType ${TensorBufferTypeName[this.bufferType]} has an unknown accelerator type.`
        );
      }
      return accelerator;
    }
    get deleted() {
      return this.deletedInternal;
    }
    delete() {
      if (this.deletedInternal) {
        return;
      }
      this.deletedInternal = true;
      this.liteRtTensorBuffer.delete();
      this.onDelete?.();
    }
  };
  function liteRtTensorBufferToTensorType(liteRtTensorBuffer) {
    const liteRtRankedTensorType = liteRtTensorBuffer.tensorType();
    const elementType = liteRtRankedTensorType.elementType();
    const liteRtLayout = liteRtRankedTensorType.layout();
    const dimensions = liteRtLayout.dimensions();
    liteRtLayout.delete();
    liteRtRankedTensorType.delete();
    return {
      dtype: getDataType(elementType.value).dtype,
      layout: { dimensions: emscriptenVectorToArray(dimensions) }
    };
  }
  function webGpuBufferToLiteRtTensorBuffer(gpuBuffer, shape, dtype, environment) {
    const globalLiteRt2 = getGlobalLiteRt();
    const liteRtWasm = globalLiteRt2.liteRtWasm;
    const dimensionsVector = new liteRtWasm.VectorInt32();
    fillEmscriptenVector(shape, dimensionsVector);
    const layout = liteRtWasm.LiteRtLayout.create(dimensionsVector);
    dimensionsVector.delete();
    const rankedTensorType = liteRtWasm.LiteRtRankedTensorType.create(
      { value: getDataType(dtype).elementType },
      layout
    );
    layout.delete();
    const importedGpuBufferPtr = liteRtWasm.WebGPU.importJsBuffer(gpuBuffer);
    const liteRtTensorBuffer = liteRtWasm.LiteRtTensorBuffer.createFromWebGpuBuffer(
      environment.liteRtEnvironment,
      rankedTensorType,
      liteRtWasm.LiteRtTensorBufferType.WEB_GPU_BUFFER_PACKED,
      importedGpuBufferPtr,
      gpuBuffer.size
    );
    rankedTensorType.delete();
    return [liteRtTensorBuffer, importedGpuBufferPtr];
  }
  function typedArrayToLiteRtTensorBuffer(data, shape, environment) {
    const globalLiteRt2 = getGlobalLiteRt();
    const liteRtWasm = globalLiteRt2.liteRtWasm;
    environment = environment ?? globalLiteRt2.getDefaultEnvironment();
    const elementType = getDataType(data).elementType;
    const dimensionsVector = new liteRtWasm.VectorInt32();
    fillEmscriptenVector(shape ?? [data.length], dimensionsVector);
    const layout = liteRtWasm.LiteRtLayout.create(dimensionsVector);
    dimensionsVector.delete();
    const expectedNumElements = layout.numElements();
    if (data.length !== expectedNumElements) {
      layout.delete();
      throw new Error(
        `Number of elements ${data.length} of the provided TypedArray does not match the expected number of elements ${expectedNumElements}.`
      );
    }
    const rankedTensorType = liteRtWasm.LiteRtRankedTensorType.create(
      { value: elementType },
      layout
    );
    layout.delete();
    const arrayType = data.constructor;
    const bufferSize = arrayType.BYTES_PER_ELEMENT * data.length;
    const expectedBufferSize = rankedTensorType.bytes();
    if (bufferSize !== expectedBufferSize) {
      rankedTensorType.delete();
      throw new Error(
        `Byte length ${bufferSize} of the provided TypedArray does not match the expected buffer size ${expectedBufferSize}.`
      );
    }
    const liteRtTensorBuffer = liteRtWasm.LiteRtTensorBuffer.createManaged(
      environment.liteRtEnvironment,
      liteRtWasm.LiteRtTensorBufferType.HOST_MEMORY,
      rankedTensorType,
      bufferSize
    );
    rankedTensorType.delete();
    const dataPtr = liteRtTensorBuffer.lock(
      liteRtWasm.LiteRtTensorBufferLockMode.WRITE
    );
    try {
      const uint8Data = new Uint8Array(
        data.buffer,
        data.byteOffset,
        data.byteLength
      );
      liteRtWasm.HEAPU8.set(uint8Data, dataPtr);
    } finally {
      liteRtTensorBuffer.unlock();
    }
    return liteRtTensorBuffer;
  }
  var CompiledModelSignatureRunner = class {
    constructor(signatureIndex, liteRtModel, liteRtCompiledModel, options) {
      this.signatureIndex = signatureIndex;
      this.liteRtModel = liteRtModel;
      this.liteRtCompiledModel = liteRtCompiledModel;
      this.options = options;
      this.liteRtSimpleSignature = liteRtModel.getSignature(signatureIndex);
      const inputNames = emscriptenVectorToArray(this.liteRtSimpleSignature.inputNames());
      const inputDetails = [];
      for (let i = 0; i < inputNames.length; i++) {
        const name = inputNames[i];
        const tensorType = liteRtModel.getInputTensorType(signatureIndex, i);
        const requirements = liteRtCompiledModel.getInputBufferRequirements(signatureIndex, i);
        inputDetails.push(makeTensorDetails(name, i, tensorType, requirements));
      }
      this.inputDetails = Object.freeze(inputDetails);
      const outputNames = emscriptenVectorToArray(this.liteRtSimpleSignature.outputNames());
      const outputDetails = [];
      for (let i = 0; i < outputNames.length; i++) {
        const name = outputNames[i];
        const tensorType = liteRtModel.getOutputTensorType(signatureIndex, i);
        const requirements = liteRtCompiledModel.getOutputBufferRequirements(signatureIndex, i);
        outputDetails.push(makeTensorDetails(name, i, tensorType, requirements));
      }
      this.outputDetails = Object.freeze(outputDetails);
    }
    inputDetails;
    outputDetails;
    liteRtSimpleSignature;
    deletedInternal = false;
    /**
     * The string key corresponding to this signature in the model.
     */
    get key() {
      this.ensureNotDeleted();
      return this.liteRtSimpleSignature.key();
    }
    /**
     * Get details about each input tensor.
     */
    getInputDetails() {
      this.ensureNotDeleted();
      return this.inputDetails;
    }
    /**
     * Get details about each output tensor.
     */
    getOutputDetails() {
      this.ensureNotDeleted();
      return this.outputDetails;
    }
    async run(input) {
      this.ensureNotDeleted();
      const inputArray = this.inputsToArray(input);
      const { inputsOnAccelerator, cleanup } = await this.ensureInputsOnAccelerator(inputArray);
      let outputArray;
      try {
        outputArray = await this.runWithArray(inputsOnAccelerator);
      } finally {
        cleanup();
      }
      if (Array.isArray(input) || input instanceof Tensor) {
        return outputArray;
      } else {
        return this.outputsToRecord(outputArray);
      }
    }
    inputsToArray(input) {
      if (Array.isArray(input)) {
        if (input.length !== this.inputDetails.length) {
          throw new Error(
            `run() called with ${input.length} inputs, but signature expects ${this.inputDetails.length} inputs`
          );
        }
        return input;
      }
      if (input instanceof Tensor) {
        if (this.inputDetails.length !== 1) {
          throw new Error(
            `run() called with a single tensor, but signature expects ${this.inputDetails.length} inputs`
          );
        }
        return [input];
      }
      const inputArray = [];
      for (const inputDetails of this.inputDetails) {
        if (!(inputDetails.name in input)) {
          throw new Error(
            `run() called with input record that is missing input ${inputDetails.name} with index ${inputDetails.index}`
          );
        }
        inputArray.push(input[inputDetails.name]);
      }
      return inputArray;
    }
    outputsToRecord(output) {
      const outputRecord = {};
      for (let i = 0; i < this.outputDetails.length; i++) {
        outputRecord[this.outputDetails[i].name] = output[i];
      }
      return outputRecord;
    }
    /**
     * Ensures that all input tensors are on the correct accelerator. Copies any
     * tensors that are not on the correct accelerator.
     *
     * @param inputs The input tensors to be passed to the signature. They must
     *     be in the same order and quantity as the input details.
     * @return A promise that resolves to a list of input tensors that are on the
     *     correct accelerator, and a cleanup function that deletes any tensors
     *     that were copied.
     */
    async ensureInputsOnAccelerator(inputs) {
      const toDelete = [];
      const inputsOnAccelerator = [];
      const inputDetails = this.getInputDetails();
      if (inputs.length !== inputDetails.length) {
        throw new Error(`ensureInputsOnAccelerator() called with ${inputs.length} inputs, but signature expects ${inputDetails.length} inputs`);
      }
      for (let i = 0; i < inputs.length; i++) {
        const input = inputs[i];
        const bufferType = input.getBufferType();
        const supportedBufferTypes = inputDetails[i].supportedBufferTypes;
        if (supportedBufferTypes.size === 0) {
          throw new Error(`Tensor ${inputDetails[i].name} with index ${inputDetails[i].index} has no supported buffer types.`);
        }
        if (supportedBufferTypes.has(bufferType)) {
          inputsOnAccelerator.push(input);
        } else {
          const newBufferType = supportedBufferTypes.values().next().value;
          const copy = await input.copyTo(newBufferType);
          toDelete.push(copy);
          inputsOnAccelerator.push(copy);
        }
      }
      return {
        inputsOnAccelerator,
        cleanup: () => {
          for (const tensor of toDelete) {
            tensor.delete();
          }
        }
      };
    }
    async runWithArray(input) {
      for (let i = 0; i < input.length; i++) {
        const inputTensor = input[i];
        const expectedRankedTensorType = this.liteRtModel.getInputTensorType(this.signatureIndex, i);
        const inputRequirements = this.liteRtCompiledModel.getInputBufferRequirements(
          this.signatureIndex,
          i
        );
        getGlobalLiteRt().liteRtWasm.checkTensorBufferCompatible(
          inputTensor.liteRtTensorBuffer,
          expectedRankedTensorType,
          inputRequirements
        );
        expectedRankedTensorType.delete();
        inputRequirements.delete();
      }
      const outputTensorBuffers = await this.liteRtCompiledModel.run(
        this.signatureIndex,
        input.map((tensor) => tensor.liteRtTensorBuffer)
      );
      return outputTensorBuffers.map(
        (tensorBuffer) => new Tensor(tensorBuffer, this.options.environment)
      );
    }
    get deleted() {
      return this.deletedInternal;
    }
    ensureNotDeleted() {
      if (this.deleted) {
        throw new Error(
          "CompiledModelSignatureRunner is deleted and cannot be used."
        );
      }
    }
    delete() {
      if (this.deletedInternal) {
        return;
      }
      this.deletedInternal = true;
      this.liteRtSimpleSignature.delete();
    }
  };
  function makeTensorDetails(name, index, tensorType, requirements) {
    const layout = tensorType.layout();
    const dimensions = emscriptenVectorToArray(layout.dimensions());
    layout.delete();
    const supportedBufferTypes = new Set(emscriptenVectorToArray(requirements.supportedTypes()).map(({ value }) => value));
    const details = {
      name,
      index,
      dtype: getDataType(tensorType.elementType().value).dtype,
      shape: new Int32Array(dimensions),
      supportedBufferTypes
    };
    tensorType.delete();
    requirements.delete();
    return details;
  }
  var CompiledModel = class {
    constructor(model, liteRtCompiledModel, options, onDelete) {
      this.model = model;
      this.liteRtCompiledModel = liteRtCompiledModel;
      this.options = options;
      this.onDelete = onDelete;
      const numSignatures = model.liteRtModel.getNumSignatures();
      const compiledModelSignatureRunners = {};
      for (let i = 0; i < numSignatures; i++) {
        const compiledModelSignatureRunner = new CompiledModelSignatureRunner(
          i,
          model.liteRtModel,
          liteRtCompiledModel,
          options
        );
        compiledModelSignatureRunners[compiledModelSignatureRunner.key] = compiledModelSignatureRunner;
      }
      this.compiledModelSignatureRunners = Object.freeze(compiledModelSignatureRunners);
      this.defaultSignature = Object.values(this.signatures)[0];
      this.key = this.defaultSignature.key;
    }
    defaultSignature;
    compiledModelSignatureRunners;
    key;
    deletedInternal = false;
    get signatures() {
      this.ensureNotDeleted();
      return this.compiledModelSignatureRunners;
    }
    getInputDetails() {
      this.ensureNotDeleted();
      return this.defaultSignature.getInputDetails();
    }
    getOutputDetails() {
      this.ensureNotDeleted();
      return this.defaultSignature.getOutputDetails();
    }
    async run(inputOrSignatureName, maybeInput) {
      this.ensureNotDeleted();
      const [signature, input] = this.parseRunInputs(inputOrSignatureName, maybeInput);
      return await signature.run(input);
    }
    parseRunInputs(inputOrSignatureName, maybeInput) {
      let signature;
      let input;
      if (typeof inputOrSignatureName === "string") {
        signature = this.signatures[inputOrSignatureName];
        if (!signature) {
          throw new Error(
            `No signature named ${inputOrSignatureName} found in model.`
          );
        }
        if (!maybeInput) {
          throw new Error(
            `No input provided for signature ${inputOrSignatureName}`
          );
        }
        input = maybeInput;
      } else {
        signature = this.defaultSignature;
        input = inputOrSignatureName;
      }
      return [signature, input];
    }
    get deleted() {
      return this.deletedInternal;
    }
    ensureNotDeleted() {
      if (this.deleted) {
        throw new Error("CompiledModel is deleted and cannot be used.");
      }
    }
    get isFullyAccelerated() {
      this.ensureNotDeleted();
      return this.liteRtCompiledModel.isFullyAccelerated();
    }
    delete() {
      if (this.deletedInternal) {
        return;
      }
      this.deletedInternal = true;
      this.liteRtCompiledModel.delete();
      this.model.delete();
      for (const signatureRunner of Object.values(
        this.compiledModelSignatureRunners
      )) {
        signatureRunner.delete();
      }
      this.onDelete();
    }
  };
  async function urlToUint8Array(url) {
    const response = await fetch(url);
    return new Uint8Array(await response.arrayBuffer());
  }
  async function readableStreamDefaultReaderToUint8Array(reader) {
    let byteOffset = 0;
    let array = new Uint8Array(
      1024
      /* arbitrary starting size */
    );
    const MAX_ARRAY_SIZE = 2e9;
    while (true) {
      const { done, value } = await reader.read();
      if (value) {
        if (array.byteLength < byteOffset + value.byteLength) {
          if (byteOffset + value.byteLength > MAX_ARRAY_SIZE) {
            throw new Error(`Model is too large (> ${MAX_ARRAY_SIZE} bytes).`);
          }
          const newArray = new Uint8Array(Math.min(
            MAX_ARRAY_SIZE,
            Math.max(array.byteLength, value.byteLength) * 2
          ));
          newArray.set(array);
          array = newArray;
        }
        array.set(value, byteOffset);
        byteOffset += value.byteLength;
      }
      if (done) {
        break;
      }
    }
    return array.slice(0, byteOffset);
  }
  var Model = class {
    constructor(liteRtModel, onDelete) {
      this.liteRtModel = liteRtModel;
      this.onDelete = onDelete;
    }
    delete() {
      this.liteRtModel.delete();
      this.onDelete();
    }
  };
  function fillCompileOptions(compileOptions = {}, environment, defaultThreadCount) {
    return {
      environment,
      accelerator: compileOptions.accelerator ?? (environment.webGpuDevice ? "webgpu" : "wasm"),
      cpuOptions: compileOptions.cpuOptions ?? { numThreads: defaultThreadCount },
      gpuOptions: compileOptions.gpuOptions ?? {},
      webNNOptions: compileOptions.webNNOptions ?? {}
    };
  }
  var WASM_RELAXED_SIMD_CHECK = new Uint8Array([
    0,
    97,
    115,
    109,
    1,
    0,
    0,
    0,
    1,
    5,
    1,
    96,
    0,
    1,
    123,
    3,
    2,
    1,
    0,
    10,
    15,
    1,
    13,
    0,
    65,
    1,
    253,
    15,
    65,
    2,
    253,
    15,
    253,
    128,
    2,
    11
  ]);
  var WASM_THREADS_CHECK = new Uint8Array([
    0,
    97,
    115,
    109,
    1,
    0,
    0,
    0,
    1,
    4,
    1,
    96,
    0,
    0,
    3,
    2,
    1,
    0,
    5,
    4,
    1,
    3,
    1,
    1,
    10,
    11,
    1,
    9,
    0,
    65,
    0,
    254,
    16,
    2,
    0,
    26,
    11
  ]);
  var WASM_FEATURE_VALUES = {
    "relaxedSimd": void 0,
    "threads": void 0,
    "jspi": void 0,
    "webnn": void 0
  };
  function isJspiSupported() {
    return "Suspending" in WebAssembly;
  }
  function isWebNnSupported() {
    return typeof navigator !== "undefined" && !!navigator.ml;
  }
  async function tryWasm(wasm) {
    try {
      await WebAssembly.instantiate(wasm);
      return { supported: true };
    } catch (e) {
      return { supported: false, error: e };
    }
  }
  var WASM_FEATURE_CHECKS = {
    "relaxedSimd": () => {
      if (WASM_FEATURE_VALUES.relaxedSimd === void 0) {
        WASM_FEATURE_VALUES.relaxedSimd = tryWasm(WASM_RELAXED_SIMD_CHECK);
      }
      return WASM_FEATURE_VALUES.relaxedSimd;
    },
    "threads": () => {
      if (WASM_FEATURE_VALUES.threads === void 0) {
        try {
          if (typeof MessageChannel !== "undefined") {
            new MessageChannel().port1.postMessage(new SharedArrayBuffer(1));
          }
          WASM_FEATURE_VALUES.threads = tryWasm(WASM_THREADS_CHECK);
        } catch (e) {
          WASM_FEATURE_VALUES.threads = Promise.resolve({ supported: false, error: e });
        }
      }
      return WASM_FEATURE_VALUES.threads;
    },
    "jspi": () => {
      if (WASM_FEATURE_VALUES.jspi === void 0) {
        const supported = isJspiSupported();
        WASM_FEATURE_VALUES.jspi = Promise.resolve({
          supported,
          error: supported ? void 0 : new Error("JSPI is not supported")
        });
      }
      return WASM_FEATURE_VALUES.jspi;
    },
    "webnn": () => {
      if (WASM_FEATURE_VALUES.webnn === void 0) {
        const supported = isWebNnSupported();
        WASM_FEATURE_VALUES.webnn = Promise.resolve({
          supported,
          error: supported ? void 0 : new Error("WebNN is not supported")
        });
      }
      return WASM_FEATURE_VALUES.webnn;
    }
  };
  async function supportsFeature(feature) {
    const check = WASM_FEATURE_CHECKS[feature]?.();
    if (!check) {
      throw new Error(`Unknown feature: ${feature}`);
    }
    return (await check).supported;
  }
  async function throwIfFeatureNotSupported(feature) {
    const check = WASM_FEATURE_CHECKS[feature]?.();
    if (!check) {
      throw new Error(`Unknown feature: ${feature}`);
    }
    const result = await check;
    if (!result.supported) {
      throw result.error;
    }
  }
  function loadAndCompile(model, compileOptions) {
    return getGlobalLiteRt().loadAndCompile(model, compileOptions);
  }
  var LiteRt = class {
    liteRtWasm;
    defaultEnvironment;
    objectsToDelete = /* @__PURE__ */ new Set();
    constructor(wasmModule) {
      this.liteRtWasm = wasmModule;
      this.liteRtWasm.setupLogging();
    }
    setDefaultEnvironment(environment) {
      this.defaultEnvironment = environment;
    }
    getDefaultEnvironment() {
      if (!this.defaultEnvironment) {
        throw new Error("Default environment is not set.");
      }
      return this.defaultEnvironment;
    }
    setWebGpuDevice(device) {
      const oldEnvironment = this.getDefaultEnvironment();
      this.setDefaultEnvironment(new Environment({
        ...oldEnvironment.options,
        webGpuDevice: device
      }));
    }
    getWebGpuDevice() {
      return this.getDefaultEnvironment().webGpuDevice;
    }
    /**
     * Registers an object to be deleted when this LiteRt instance is deleted.
     * Internal use only.
     */
    _registerObjectForDeletion(object) {
      this.objectsToDelete.add(object);
    }
    /**
     * Unregisters an object from being deleted when this LiteRt instance is
     * deleted. Internal use only.
     */
    _unregisterObjectForDeletion(object) {
      this.objectsToDelete.delete(object);
    }
    /**
     * Loads and compiles a LiteRt model.
     *
     * @param model The model data. This can be a string (the model url), a URL
     *     object, a Uint8Array (the model bytes), or a
     *     ReadableStreamDefaultReader (for streaming model loading).
     * @param compileOptions The options for compiling the model. This includes
     *     the accelerator to use ('webgpu' or 'wasm') and the WebGPU device
     *     (for direct GPU model inputs / outputs).
     * @returns A promise that resolves to the CompiledModel.
     */
    async loadAndCompile(model, compileOptions = {}) {
      let modelData;
      if (typeof model === "string" || model instanceof URL) {
        modelData = await urlToUint8Array(model);
      } else if (model instanceof Uint8Array) {
        modelData = model;
      } else if (model instanceof ReadableStreamDefaultReader) {
        modelData = await readableStreamDefaultReaderToUint8Array(model);
      } else {
        throw new Error("Unsupported model type.");
      }
      const environment = compileOptions.environment ?? this.getDefaultEnvironment();
      const accelerator = compileOptions.accelerator ?? (environment.webGpuDevice ? "webgpu" : "wasm");
      const isWebGpu = accelerator === "webgpu";
      if (isWebGpu && !environment.webGpuDevice) {
        throw new Error(
          "WebGPU was requested but no WebGPU device is set in the environment."
        );
      }
      const filledCompileOptions = fillCompileOptions(
        compileOptions,
        environment,
        this.liteRtWasm.getThreadCount()
      );
      const ptr = this.liteRtWasm._malloc(modelData.byteLength);
      this.liteRtWasm.HEAPU8.set(modelData, ptr);
      const wasmModel = this.liteRtWasm.loadModel(
        filledCompileOptions.environment.liteRtEnvironment,
        ptr,
        modelData.byteLength
      );
      const wasmCompiledModel = await this.liteRtWasm.compileModel(
        filledCompileOptions.environment.liteRtEnvironment,
        wasmModel,
        filledCompileOptions
      );
      const loadedModel = new Model(wasmModel, () => {
        this.liteRtWasm._free(ptr);
      });
      const compiledModel = new CompiledModel(
        loadedModel,
        wasmCompiledModel,
        filledCompileOptions,
        () => {
          this.objectsToDelete.delete(compiledModel);
        }
      );
      this.objectsToDelete.add(compiledModel);
      const isWebNn = accelerator === "webnn";
      const acceleratorRequested = isWebGpu || isWebNn;
      if (acceleratorRequested && !compiledModel.isFullyAccelerated) {
        if (isJspiSupported()) {
          console.warn(
            `%c[LiteRT]%c Model not fully compiled for ${accelerator}. Partially delegating to WASM execution.`,
            "background: #FFA000; color: black; font-weight: bold; padding: 2px 5px; border-radius: 3px;",
            "font-weight: bold;"
          );
        } else {
          console.warn(
            `%c[LiteRT]%c Model not fully compiled for ${accelerator} on non-JSPI browser. Falling back to WASM execution.`,
            "background: #D32F2F; color: white; font-weight: bold; padding: 2px 5px; border-radius: 3px;",
            "color: #D32F2F; font-weight: bold;"
          );
          compiledModel.delete();
          const fallbackCompileOptions = {
            ...compileOptions,
            accelerator: "wasm"
          };
          return this.loadAndCompile(modelData, fallbackCompileOptions);
        }
      }
      return compiledModel;
    }
    delete() {
      for (const object of this.objectsToDelete) {
        object.delete();
      }
    }
  };
  function pathToString(path) {
    return path;
  }
  function appendPathSegment(path, segment) {
    if (!path) return segment;
    if (!segment) return path;
    const pathWithSlash = path.endsWith("/") ? path : path + "/";
    const segmentWithoutSlash = segment.startsWith("/") ? segment.substring(1) : segment;
    return pathWithSlash + segmentWithoutSlash;
  }
  var WASM_JS_FILE_NAME = "litert_wasm_internal.js";
  var WASM_JS_COMPAT_FILE_NAME = "litert_wasm_compat_internal.js";
  var WASM_JS_THREADED_FILE_NAME = "litert_wasm_threaded_internal.js";
  var WASM_JS_JSPI_FILE_NAME = "litert_wasm_jspi_internal.js";
  async function load(path, options) {
    const pathString = pathToString(path);
    const isFullFilePath = pathString.endsWith(".wasm") || pathString.endsWith(".js");
    const relaxedSimd = await supportsFeature("relaxedSimd");
    if (options?.threads) {
      if (options?.jspi) {
        throw new Error(
          "The `threads` and `jspi` options are mutually exclusive."
        );
      }
      if (isFullFilePath) {
        console.warn(
          `The \`threads\` option was specified, but the wasm path ${pathString} is a full file path. Whether threads are available or not will depend on the loaded file. To allow LiteRT.js to load the threaded wasm file, use a directory path instead of a full file path.`
        );
      }
      if (!relaxedSimd) {
        throw new Error(
          "Threads are only supported with relaxed SIMD, and the current browser does not support relaxed SIMD."
        );
      }
      await throwIfFeatureNotSupported("threads");
    }
    if (options?.jspi) {
      if (isFullFilePath) {
        console.warn(
          `The \`jspi\` option was specified, but the wasm path ${pathString} is a full file path. Whether JSPI is available or not will depend on the loaded file. To allow LiteRT.js to load the JSPI wasm file, use a directory path instead of a full file path.`
        );
      }
      await throwIfFeatureNotSupported("jspi");
    }
    let fileName = WASM_JS_COMPAT_FILE_NAME;
    if (relaxedSimd) {
      if (options?.threads) {
        fileName = WASM_JS_THREADED_FILE_NAME;
      } else if (options?.jspi) {
        fileName = WASM_JS_JSPI_FILE_NAME;
      } else {
        fileName = WASM_JS_FILE_NAME;
      }
    }
    let jsFilePath = path;
    if (pathString.endsWith(".wasm")) {
      throw new Error(
        "Please load the `.js` file corresponding to the `.wasm` file, or load the directory containing it."
      );
    } else if (!pathString.endsWith(".js")) {
      jsFilePath = appendPathSegment(path, fileName);
    }
    return createWasmLib(LiteRt, jsFilePath);
  }
  function loadLiteRt(path, options) {
    if (hasGlobalLiteRtPromise()) {
      throw new Error("LiteRT is already loading / loaded.");
    }
    setGlobalLiteRtPromise(load(path, options).then(async (liteRt) => {
      setGlobalLiteRt(liteRt);
      liteRt.setDefaultEnvironment(
        await Environment.create()
      );
      return liteRt;
    }).catch((error) => {
      setGlobalLiteRtPromise(void 0);
      throw error;
    }));
    return getGlobalLiteRtPromise();
  }
  var compilationLock = Promise.resolve();
  async function copyHostMemoryToHostMemory(cpuTensor, options = {}) {
    const environment = options.environment ?? cpuTensor.environment;
    const liteRtWasm = getGlobalLiteRt().liteRtWasm;
    const srcTensorBuffer = cpuTensor.liteRtTensorBuffer;
    const bufferType = srcTensorBuffer.bufferType();
    if (bufferType.value !== TensorBufferType.HOST_MEMORY) {
      throw new Error(
        "Source tensor is not in host memory. Cannot copy to host memory."
      );
    }
    const srcTensorMemoryPtr = srcTensorBuffer.lock(
      liteRtWasm.LiteRtTensorBufferLockMode.READ
    );
    let destTensorBuffer;
    try {
      destTensorBuffer = liteRtWasm.LiteRtTensorBuffer.createManaged(
        environment.liteRtEnvironment,
        liteRtWasm.LiteRtTensorBufferType.HOST_MEMORY,
        srcTensorBuffer.tensorType(),
        srcTensorBuffer.size()
      );
      const destMemoryPointer = destTensorBuffer.lock(
        liteRtWasm.LiteRtTensorBufferLockMode.WRITE
      );
      try {
        const srcTensorMemoryView = new Uint8Array(
          liteRtWasm.HEAPU8.buffer,
          srcTensorMemoryPtr,
          srcTensorBuffer.size()
        );
        liteRtWasm.HEAPU8.set(srcTensorMemoryView, destMemoryPointer);
      } finally {
        destTensorBuffer.unlock();
      }
    } finally {
      srcTensorBuffer.unlock();
    }
    if (!destTensorBuffer) {
      throw new Error("Failed to create destination tensor buffer.");
    }
    return new Tensor(destTensorBuffer, environment);
  }
  async function cpuTensorToGpuTensor(cpuTensor, options = {}) {
    const environment = options.environment ?? cpuTensor.environment;
    const device = environment.webGpuDevice;
    if (!device) {
      throw new Error(
        "No WebGPU device is available. Did you forget to pass a destination environment that has a WebGPU device?"
      );
    }
    const liteRtWasm = getGlobalLiteRt().liteRtWasm;
    const byteLength = cpuTensor.liteRtTensorBuffer.size();
    const paddedByteLength = byteLength + 3 & ~3;
    const stagingBuffer = device.createBuffer({
      size: paddedByteLength,
      usage: GPUBufferUsage.MAP_WRITE | GPUBufferUsage.COPY_SRC,
      mappedAtCreation: true
    });
    const mappedBuffer = await stagingBuffer.getMappedRange();
    const mappedArray = new Uint8Array(mappedBuffer);
    const cpuMemoryPtr = cpuTensor.liteRtTensorBuffer.lock(
      liteRtWasm.LiteRtTensorBufferLockMode.READ
    );
    try {
      const cpuMemoryView = new Uint8Array(
        liteRtWasm.HEAPU8.buffer,
        cpuMemoryPtr,
        cpuTensor.liteRtTensorBuffer.size()
      );
      mappedArray.set(cpuMemoryView);
    } finally {
      cpuTensor.liteRtTensorBuffer.unlock();
    }
    stagingBuffer.unmap();
    const buffer = device.createBuffer({
      size: paddedByteLength,
      usage: GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST | GPUBufferUsage.STORAGE
    });
    const commandEncoder = device.createCommandEncoder();
    commandEncoder.copyBufferToBuffer(
      stagingBuffer,
      0,
      buffer,
      0,
      paddedByteLength
    );
    device.queue.submit([commandEncoder.finish()]);
    stagingBuffer.destroy();
    return new Tensor(
      buffer,
      cpuTensor.type.layout.dimensions,
      cpuTensor.type.dtype,
      environment,
      () => {
        buffer.destroy();
      }
    );
  }
  async function gpuTensorToCpuTensor(gpuTensor, options = {}) {
    const environment = options.environment ?? gpuTensor.environment;
    const device = gpuTensor.environment.webGpuDevice;
    if (!device) {
      throw new Error(
        "No WebGPU device is available. Does the source tensor have a WebGPU device?"
      );
    }
    const liteRtWasm = getGlobalLiteRt().liteRtWasm;
    const tensorBuffer = gpuTensor.liteRtTensorBuffer;
    const bufferType = tensorBuffer.bufferType();
    if (bufferType !== liteRtWasm.LiteRtTensorBufferType.WEB_GPU_BUFFER_PACKED) {
      throw new Error(`Cannot convert a tensor with a non-WebGPU buffer type ${bufferType} to a CPU tensor.`);
    }
    const gpuBuffer = liteRtWasm.WebGPU.getJsObject(
      tensorBuffer.getWebGpuBuffer()
    );
    const byteOffset = tensorBuffer.offset();
    const tensorType = tensorBuffer.tensorType();
    const layout = tensorType.layout();
    const numElements = layout.numElements();
    const arrayConstructor = getDataType(tensorType.elementType().value).typedArrayConstructor;
    layout.delete();
    tensorType.delete();
    let mappableBuffer = gpuBuffer;
    let cleanupBuffer = () => {
    };
    if (!(gpuBuffer.usage & GPUBufferUsage.MAP_READ)) {
      mappableBuffer = device.createBuffer({
        size: gpuBuffer.size,
        usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ
      });
      cleanupBuffer = () => {
        mappableBuffer.destroy();
      };
      const commandEncoder = device.createCommandEncoder();
      commandEncoder.copyBufferToBuffer(
        gpuBuffer,
        0,
        mappableBuffer,
        0,
        gpuBuffer.size
      );
      device.queue.submit([commandEncoder.finish()]);
    }
    await mappableBuffer.mapAsync(GPUMapMode.READ);
    const mappedBuffer = mappableBuffer.getMappedRange();
    const mappedArray = new arrayConstructor(mappedBuffer, byteOffset, numElements);
    const cpuTensor = new Tensor(mappedArray, gpuTensor.type.layout.dimensions, environment);
    mappableBuffer.unmap();
    cleanupBuffer();
    return cpuTensor;
  }
  function makeMoveTo(copyTo) {
    return async (tensor, options) => {
      const result = await copyTo(tensor, options);
      tensor.delete();
      return result;
    };
  }
  function registerCopyFunctions() {
    Tensor.copyFunctions.set(TensorBufferType.HOST_MEMORY, /* @__PURE__ */ new Map([
      [
        TensorBufferType.HOST_MEMORY,
        {
          copyTo: copyHostMemoryToHostMemory,
          // There might be a more efficient way to move
          // from CPU to CPU.
          moveTo: makeMoveTo(copyHostMemoryToHostMemory)
        }
      ],
      [
        TensorBufferType.WEB_GPU_BUFFER_PACKED,
        {
          copyTo: cpuTensorToGpuTensor,
          moveTo: makeMoveTo(cpuTensorToGpuTensor)
        }
      ]
    ]));
    Tensor.copyFunctions.set(TensorBufferType.WEB_GPU_BUFFER_PACKED, /* @__PURE__ */ new Map([
      [
        TensorBufferType.HOST_MEMORY,
        {
          copyTo: gpuTensorToCpuTensor,
          moveTo: makeMoveTo(gpuTensorToCpuTensor)
        }
      ]
    ]));
  }
  registerCopyFunctions();

  // src/sentencepiece.js
  var SPACE = "▁";
  var NORMAL = 1;
  var UNKNOWN = 2;
  var CONTROL = 3;
  var USER_DEFINED = 4;
  var UNUSED = 5;
  var BYTE = 6;
  var UNIGRAM = 1;
  var BPE = 2;
  var UNKNOWN_PENALTY = 10;
  var utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
  var toBytes = new TextEncoder();
  var float32 = Math.fround;
  var SentencePiece = class {
    /** @param {ArrayBuffer} model the content of a `.spm` file */
    constructor(model) {
      const file = fields(new Uint8Array(model));
      const pieces = (file.get(1) ?? []).map(fields);
      if (pieces.length === 0) throw new Error("This is not a SentencePiece model: it has no pieces.");
      this.pieces = pieces.map((piece) => utf8.decode(last(piece, 1, new Uint8Array())));
      this.scores = pieces.map((piece) => last(piece, 2, 0));
      this.types = pieces.map((piece) => last(piece, 3, NORMAL));
      if (this.types.includes(BYTE)) throw new Error("SentencePiece models with byte fallback are not supported.");
      const trainer = fields(last(file, 2, new Uint8Array()));
      this.unknownSurface = trainer.has(44) ? utf8.decode(last(trainer, 44)) : " ⁇ ";
      this.modelType = last(trainer, 3, UNIGRAM);
      if (this.modelType !== UNIGRAM && this.modelType !== BPE) {
        throw new Error("SentencePiece models must be unigram or BPE.");
      }
      const normalizer = fields(last(file, 3, new Uint8Array()));
      this.charsmap = charsmap(last(normalizer, 2, new Uint8Array()));
      this.addDummyPrefix = last(normalizer, 3, 1) !== 0;
      this.removeExtraSpaces = last(normalizer, 4, 1) !== 0;
      this.unknownId = this.types.indexOf(UNKNOWN);
      const found = (kinds) => this.pieces.map((piece, id) => [piece, id]).filter(([, id]) => kinds.includes(this.types[id]));
      this.ids = new Map(found([NORMAL, USER_DEFINED, UNUSED]));
      this.userDefined = found([USER_DEFINED]).map(([piece]) => piece).sort((a, b) => b.length - a.length);
      const scores = this.scores.filter((_, id) => this.types[id] === NORMAL);
      this.minScore = scores.reduce((a, b) => Math.min(a, b), Infinity);
      this.maxScore = scores.reduce((a, b) => Math.max(a, b), -Infinity);
      this.longest = Math.max(0, ...[...this.ids.keys()].map((piece) => [...piece].length));
    }
    /** The ids of a text, without start or end. */
    encode(text) {
      const characters = this.#split(this.normalize(text));
      const ids = this.modelType === UNIGRAM ? this.#viterbi(characters) : this.#merge(characters);
      return ids.filter((id, i) => id !== this.unknownId || ids[i - 1] !== id);
    }
    /** The text of ids; special ids vanish. */
    decode(ids) {
      let text = "";
      for (const id of ids) {
        if (this.types[id] === CONTROL) continue;
        if (this.types[id] === UNKNOWN) {
          text += this.unknownSurface;
          continue;
        }
        let piece = this.pieces[id];
        if (text === "" && (this.addDummyPrefix || this.removeExtraSpaces) && piece.startsWith(SPACE)) piece = piece.slice(1);
        text += piece.replaceAll(SPACE, " ");
      }
      return text;
    }
    /** The text as the model sees it: characters replaced by the model's table, spaces joined and shown as "▁". */
    normalize(text) {
      const bytes = toBytes.encode(text);
      let result = "", atSpace = this.removeExtraSpaces, begun = false;
      for (let i = 0; i < bytes.length; ) {
        let [part, length] = this.#replacement(bytes, i);
        i += length;
        if (!begun) {
          if (this.removeExtraSpaces && part === " ") continue;
          begun = true;
          if (this.addDummyPrefix) result += SPACE;
        }
        if (atSpace) part = part.replace(/^ +/, "");
        if (part === "") continue;
        result += part.replaceAll(" ", SPACE);
        atSpace = this.removeExtraSpaces && part.endsWith(" ");
      }
      return this.removeExtraSpaces ? result.replace(/▁+$/, "") : result;
    }
    /** What stands for the longest match of the table at byte `start`, and the number of bytes it stands for. */
    #replacement(bytes, start) {
      for (const piece of this.userDefined) {
        const wanted = toBytes.encode(piece);
        if (wanted.every((byte, i) => bytes[start + i] === byte)) return [piece, wanted.length];
      }
      const { trie, texts } = this.charsmap;
      let found = -1, length = 0;
      if (trie.length > 0) {
        const offset = (unit) => unit >>> 10 << ((unit & 512) >>> 6);
        let node = offset(trie[0]);
        for (let i = start; i < bytes.length; i++) {
          node ^= bytes[i];
          const unit = trie[node];
          if (unit === void 0 || (unit & 2147483903) >>> 0 !== bytes[i]) break;
          node ^= offset(unit);
          if (unit >>> 8 & 1) [found, length] = [trie[node] & 2147483647, i + 1 - start];
        }
      }
      if (found >= 0) return [utf8.decode(texts.subarray(found, texts.indexOf(0, found))), length];
      const first = bytes[start];
      length = first < 128 ? 1 : first < 224 ? 2 : first < 240 ? 3 : 4;
      return [utf8.decode(bytes.subarray(start, start + length)), length];
    }
    /** Characters, but user-defined pieces in one. */
    #split(text) {
      if (this.userDefined.length === 0) return [...text];
      const parts = [];
      for (let i = 0; i < text.length; i += parts.at(-1).length) {
        const piece = this.userDefined.find((piece2) => text.startsWith(piece2, i));
        parts.push(piece ?? String.fromCodePoint(text.codePointAt(i)));
      }
      return parts;
    }
    /** Unigram: the segmentation with the largest sum of scores. */
    #viterbi(characters) {
      const size = characters.length;
      const best = new Float32Array(size + 1), from = new Int32Array(size + 1).fill(-1), ids = new Int32Array(size + 1);
      const unknown = float32(this.minScore - UNKNOWN_PENALTY);
      const offer = (start, end, score, id) => {
        const total = float32(score + best[start]);
        if (from[end] !== -1 && total <= best[end]) return;
        [best[end], from[end], ids[end]] = [total, start, id];
      };
      for (let start = 0; start < size; start++) {
        let piece = "", single = false;
        for (let end = start + 1; end <= Math.min(size, start + this.longest); end++) {
          piece += characters[end - 1];
          const id = this.ids.get(piece);
          if (id === void 0 || this.types[id] === UNUSED) continue;
          const length = toBytes.encode(piece).length;
          offer(start, end, this.types[id] === USER_DEFINED ? length * this.maxScore - 0.1 : this.scores[id], id);
          single ||= end === start + 1;
        }
        if (!single) offer(start, start + 1, unknown, this.unknownId);
      }
      const path = [];
      for (let end = size; end > 0; end = from[end]) path.push(ids[end]);
      return path.reverse();
    }
    /** BPE: joins the neighbours whose piece has the largest score, the leftmost of equals, until none is a piece. */
    #merge(characters) {
      const symbols = characters.map((text, i) => ({ text, previous: i - 1, next: i + 1 < characters.length ? i + 1 : -1 }));
      const frozen = new Set(this.userDefined);
      const parts = /* @__PURE__ */ new Map();
      const agenda = new Heap((a, b) => a.score > b.score || a.score === b.score && a.left < b.left);
      const propose = (left, right) => {
        if (left === -1 || right === -1 || frozen.has(symbols[left].text) || frozen.has(symbols[right].text)) return;
        const piece = symbols[left].text + symbols[right].text, id = this.ids.get(piece);
        if (id === void 0) return;
        agenda.push({ left, right, score: this.scores[id], size: piece.length });
        if (this.types[id] === UNUSED) parts.set(piece, [symbols[left].text, symbols[right].text]);
      };
      for (let i = 1; i < symbols.length; i++) propose(i - 1, i);
      for (let top = agenda.pop(); top !== void 0; top = agenda.pop()) {
        const left = symbols[top.left], right = symbols[top.right];
        if (left.text === "" || right.text === "" || left.text.length + right.text.length !== top.size) continue;
        left.text += right.text;
        right.text = "";
        left.next = right.next;
        if (right.next !== -1) symbols[right.next].previous = top.left;
        propose(left.previous, top.left);
        propose(top.left, left.next);
      }
      const resolve = (text) => {
        const id = this.ids.get(text) ?? this.unknownId;
        return this.types[id] === UNUSED && parts.has(text) ? parts.get(text).flatMap(resolve) : [id];
      };
      return symbols.filter((symbol) => symbol.text !== "").flatMap((symbol) => resolve(symbol.text));
    }
  };
  var Heap = class {
    #items = [];
    #before;
    constructor(before) {
      this.#before = before;
    }
    push(item) {
      const items = this.#items;
      let i = items.push(item) - 1;
      for (let up; i > 0 && this.#before(item, items[up = i - 1 >> 1]); i = up) items[i] = items[up];
      items[i] = item;
    }
    pop() {
      const items = this.#items, top = items[0], item = items.pop();
      if (items.length === 0) return top;
      let i = 0;
      for (let down; (down = 2 * i + 1) < items.length; i = down) {
        if (down + 1 < items.length && this.#before(items[down + 1], items[down])) down++;
        if (!this.#before(items[down], item)) break;
        items[i] = items[down];
      }
      items[i] = item;
      return top;
    }
  };
  function fields(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const found = /* @__PURE__ */ new Map();
    let at = 0;
    const take = (length) => {
      if (at + length > bytes.length) throw new Error("The SentencePiece model is cut off.");
      return (at += length) - length;
    };
    const varint = () => {
      let value = 0;
      for (let scale = 1; ; scale *= 128) {
        const byte = bytes[take(1)];
        value += (byte & 127) * scale;
        if (byte < 128) return value;
      }
    };
    while (at < bytes.length) {
      const tag = varint(), kind = tag % 8;
      let value;
      if (kind === 0) value = varint();
      else if (kind === 1) value = view.getFloat64(take(8), true);
      else if (kind === 5) value = view.getFloat32(take(4), true);
      else if (kind === 2) {
        const length = varint(), start = take(length);
        value = bytes.subarray(start, start + length);
      } else throw new Error("This is not a SentencePiece model.");
      const number = Math.floor(tag / 8);
      if (!found.has(number)) found.set(number, []);
      found.get(number).push(value);
    }
    return found;
  }
  function last(message, number, otherwise) {
    return message.get(number)?.at(-1) ?? otherwise;
  }
  function charsmap(bytes) {
    if (bytes.length === 0) return { trie: new Uint32Array(), texts: bytes };
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const size = view.getUint32(0, true);
    const trie = Uint32Array.from({ length: size / 4 }, (_, i) => view.getUint32(4 + 4 * i, true));
    return { trie, texts: bytes.subarray(4 + size) };
  }

  // src/translator.js
  var IMPOSSIBLE = -1e8;
  var runtime;
  var Translator = class _Translator {
    #model;
    /**
     * @param {string} folder address of the folder
     * @param {string} litert address of the folder with LiteRT's WebAssembly
     * @param {(loaded: number) => void} onProgress called with the number of bytes of the model so far
     */
    static async load(folder, litert, onProgress = () => {
    }) {
      const translator2 = new _Translator();
      translator2.settings = await settings(`${folder}/translator.json`);
      const [bytes, ...tokenizers] = await Promise.all([
        download(`${folder}/translator.tflite`, onProgress),
        ...translator2.settings.tokenizers.map((name) => tokenizer(`${folder}/${name}`))
      ]);
      [translator2.source, translator2.target] = [tokenizers.at(0), tokenizers.at(-1)];
      globalThis.Module = { locateFile: (file) => litert + file };
      runtime ??= loadLiteRt(litert).catch((error) => {
        runtime = void 0;
        throw new Error(`LiteRT's WebAssembly could not be started from ${litert}: ${error.message ?? error}`);
      });
      await runtime;
      translator2.#model = await loadAndCompile(bytes, { accelerator: "wasm" }).catch((error) => {
        throw new Error(`${folder}/translator.tflite cannot be used: ${error.message ?? error}.`);
      });
      return translator2;
    }
    delete() {
      this.#model.delete();
    }
    /** Most tokens of a text; more are cut off. */
    get longest() {
      return this.settings.source_length - 1;
    }
    /** The token ids of a text, the end token last, and whether it was cut. */
    encode(text) {
      const ids = this.source.encode(text);
      return { ids: [...ids.slice(0, this.longest), this.settings.end_token_id], truncated: ids.length > this.longest };
    }
    /** The text of token ids. */
    decode(ids) {
      return this.target.decode(ids);
    }
    /** Greedy search, token by token, for showing a translation while it is made: an async iterator of ids. */
    async *steps(sourceIds) {
      const { start_token_id, end_token_id, target_length, settings: settings2 } = this.settings;
      const limit = Math.floor(settings2.max_length_ratio * sourceIds.length + 16);
      const most = Math.min(limit, settings2.max_length ?? limit, target_length);
      const cross = await this.#run("encode", { token_ids: this.#sourceTensor(sourceIds) });
      let cache = {};
      try {
        for (const { name, shape } of this.#model.signatures.decode_step.getInputDetails()) {
          if (name.startsWith("self_")) cache[name] = new Tensor(new Float32Array(shape.reduce((a, b) => a * b)), shape);
        }
        for (let position = 0, token = start_token_id; position < most && token !== end_token_id; position++) {
          const kept = { ...cache };
          for (const [name, tensor] of Object.entries(cross)) kept[`${name}_in`] = tensor;
          const { logits, ...next } = await this.#run("decode_step", { token: int32([token]), position: int32([position]) }, kept);
          free(cache);
          cache = Object.fromEntries(Object.entries(next).map(([name, tensor]) => [name.replace("next_", ""), tensor]));
          token = argmax(logits.toTypedArray());
          logits.delete();
          yield token;
        }
      } finally {
        free(cache);
        free(cross);
      }
    }
    /** The translations of a text, best first: `{ids, text, score}`. */
    async translate(sourceIds) {
      const beam = "translate_beam" in this.#model.signatures;
      const found = await this.#run(beam ? "translate_beam" : "translate", { token_ids: this.#sourceTensor(sourceIds) });
      const ids = (beam ? found.hypothesis_ids : found.translation_ids).toTypedArray();
      const scores = (beam ? found.scores : found.score).toTypedArray();
      const length = this.settings.target_length;
      const rows = Array.from(scores, (score, i) => {
        const row = Array.from(ids.subarray(i * length, (i + 1) * length)).filter((id) => id !== this.settings.pad_token_id);
        return { ids: row, text: this.decode(row), score };
      });
      free(found);
      return rows.filter((row) => row.score > IMPOSSIBLE);
    }
    /**
     * Where each head looked in the source to write each token of a translation.
     *
     * @returns `{source, target, layers, heads, scores}`: pieces, numbers, and `scores[layer][head][t]`, a Float32Array
     *   with one weight per source piece.
     */
    async attention(sourceIds, targetIds) {
      const { source_length, target_length, pad_token_id } = this.settings;
      const target = new Int32Array(target_length).fill(pad_token_id);
      target.set(targetIds);
      const inputs = { token_ids: this.#sourceTensor(sourceIds), translation_ids: int32(target) };
      const found = await this.#run("attention", inputs);
      const [{ shape }] = this.#model.signatures.attention.getOutputDetails();
      const [, layers, heads] = shape, values = found.scores.toTypedArray();
      free(found);
      const row = (layer, head, t) => {
        const start = ((layer * heads + head) * target_length + t) * source_length;
        return values.slice(start, start + sourceIds.length);
      };
      const each = (count, make) => Array.from({ length: count }, (_, i) => make(i));
      return {
        source: sourceIds.map((id) => this.source.pieces[id]),
        target: targetIds.map((id) => this.target.pieces[id]),
        layers,
        heads,
        scores: each(layers, (layer) => each(heads, (head) => each(targetIds.length, (t) => row(layer, head, t))))
      };
    }
    #sourceTensor(ids) {
      const padded = new Int32Array(this.settings.source_length).fill(this.settings.pad_token_id);
      padded.set(ids);
      return int32(padded);
    }
    /** Runs a signature; frees `inputs`, not `kept`. The outputs are the caller's to free. */
    async #run(name, inputs, kept = {}) {
      try {
        return await this.#model.run(name, { ...inputs, ...kept });
      } finally {
        free(inputs);
      }
    }
  };
  function int32(values) {
    return values.length === 1 ? new Tensor(Int32Array.from(values), [1]) : new Tensor(values, [1, values.length]);
  }
  function free(tensors) {
    for (const tensor of Object.values(tensors)) tensor.delete();
  }
  function argmax(values) {
    return values.reduce((best, value, i) => value > values[best] ? i : best, 0);
  }
  async function get(address) {
    const answer = await fetch(address).catch((error) => {
      throw new Error(`${address} could not be loaded (${error.message}). Is the server still running?`);
    });
    if (!answer.ok) throw new Error(`${address} could not be loaded (${answer.status} ${answer.statusText}).`);
    return answer;
  }
  async function settings(address) {
    const answer = await get(address);
    try {
      const found = await answer.json();
      const whole = (name, least) => {
        if (!Number.isInteger(found?.[name]) || found[name] < least) throw new Error(`${name} must be a whole number from ${least} on`);
      };
      for (const name of ["source_length", "target_length"]) whole(name, 1);
      for (const name of ["pad_token_id", "start_token_id", "end_token_id"]) whole(name, 0);
      const { tokenizers, settings: settings2 } = found;
      const named = Array.isArray(tokenizers) && [1, 2].includes(tokenizers.length) && tokenizers.every((name) => /^[\w.-]+\.spm$/.test(name));
      if (!named) throw new Error("tokenizers must be one or two files of SentencePiece");
      if (!(settings2?.max_length_ratio > 0)) throw new Error("settings must have a max_length_ratio of more than 0");
      return found;
    } catch (error) {
      throw new Error(`${address} cannot be used: ${error.message}.`);
    }
  }
  async function tokenizer(address) {
    const model = await (await get(address)).arrayBuffer();
    try {
      return new SentencePiece(model);
    } catch (error) {
      throw new Error(`${address} cannot be used as a tokenizer: ${error.message}`);
    }
  }
  async function download(address, onProgress) {
    const answer = await get(address);
    const parts = [];
    let loaded = 0;
    for (const reader = answer.body.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      onProgress(loaded += value.length);
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  }

  // src/worker.js
  var here = new URL(".", self.location.href).href;
  var translator;
  var newest = 0;
  var queue = Promise.resolve();
  var requests = {
    async load({ folder }, progress) {
      const began = performance.now();
      await translator?.then((model) => model.delete(), () => {
      });
      translator = Translator.load(here + folder, `${here}litert/`, (loaded2) => progress({ loaded: loaded2 }));
      const loaded = await translator;
      return { seconds: (performance.now() - began) / 1e3, longest: loaded.longest, settings: loaded.settings };
    },
    async count({ text }) {
      return (await translator).source.encode(text).length;
    },
    async translate({ id, text }, progress) {
      const model = await translator;
      const { ids, truncated } = model.encode(text);
      if (ids.length <= 1) return { empty: true };
      const times = {};
      const timed = async (name, work) => {
        const began = performance.now();
        const result = await work();
        times[name] = performance.now() - began;
        return result;
      };
      await timed("greedy", async () => {
        const tokens = [];
        for await (const token of model.steps(ids)) {
          tokens.push(token);
          progress({ text: model.decode(tokens) });
          await otherMessages();
          if (id !== newest) break;
        }
      });
      if (id !== newest) return { superseded: true };
      const hypotheses = await timed("search", () => model.translate(ids));
      const attention = await timed("attention", () => model.attention(ids, hypotheses[0].ids));
      return { ids, truncated, hypotheses, attention, times };
    },
    async attention({ source, target }) {
      return (await translator).attention(source, target);
    }
  };
  var channel = new MessageChannel();
  function otherMessages() {
    return new Promise((resolve) => {
      channel.port1.onmessage = resolve;
      channel.port2.postMessage(null);
    });
  }
  self.onmessage = ({ data }) => {
    const { id, kind } = data;
    if (kind === "translate") newest = id;
    queue = queue.then(async () => {
      try {
        self.postMessage({ id, result: await requests[kind](data, (progress) => self.postMessage({ id, progress })) });
      } catch (error) {
        self.postMessage({ id, error: error.message ?? String(error) });
      }
    });
  };
})();
